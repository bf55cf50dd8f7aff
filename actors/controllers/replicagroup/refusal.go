package replicagroup

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Reasons of refusals, as conditions have them.
const (
	reasonUnknownSize     = "UnknownSize"
	reasonInvalidTemplate = "InvalidTemplate"
	reasonInvalidSpec     = "InvalidSpec"
	reasonNameTaken       = "PodNameTaken"
	reasonPodRefused      = "PodRefused"
	reasonTemplateLost    = "TemplateLost"
)

// refusal is what only the user can put right; it is told on the group, and tried again now and then.
type refusal struct{ reason, message string }

// Error is what the user is told.
func (r *refusal) Error() string { return r.message }

func refuse(reason, format string, args ...any) *refusal {
	return &refusal{reason, fmt.Sprintf(format, args...)}
}

// quotaRefused tells whether a pod was refused because the namespace's quota is used up, which is a lack of room.
func quotaRefused(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
}

// namespaceEnds tells whether nothing more is made in the namespace, because it is being deleted.
func namespaceEnds(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// verdict tells whether the API has judged the pod itself, and would judge it so again.
func verdict(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}
