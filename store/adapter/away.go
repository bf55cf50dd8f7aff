package adapter

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// away answers what cannot be answered truly while the store is elsewhere and silent: writes, and reads that ask for what is newest.
func away(err error) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable,
		Message: fmt.Sprintf("the store cannot be asked: %v; what is in memory can be read with resourceVersion=0", err),
		Details: &metav1.StatusDetails{RetryAfterSeconds: retryAfter},
	}}
}
