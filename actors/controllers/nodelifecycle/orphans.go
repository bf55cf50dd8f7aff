package nodelifecycle

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeactor/nodeactor/actors/operator/kube"
)

// quarantine is how long a node must have been missing before its pods are removed; upstream's figure.
const quarantine = 40 * time.Second

// orphans removes the pods of a node that does not exist, after the quarantine and by the API's word too.
func (r *reconciler) orphans(ctx context.Context, node string) (kube.Action, error) {
	pods := r.cache.PodsOn(node)
	if len(pods) == 0 {
		r.found(node)
		return kube.Done(), nil
	}
	if left := r.missed(node); left > 0 {
		return kube.Requeue(left), nil
	}
	if _, err := r.client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return kube.None(), err
	}
	err := kube.Parallel(ctx, parallel, len(pods), func(ctx context.Context, i int) error {
		how := metav1.NewPreconditionDeleteOptions(string(pods[i].UID))
		how.GracePeriodSeconds = new(int64)
		return r.disrupt(ctx, pods[i], "DeletionByPodGC", "PodGC: node no longer exists", *how)
	})
	if err != nil {
		return kube.None(), fmt.Errorf("cannot remove the pods of node %q, which is gone: %w", node, err)
	}
	return kube.None(), nil
}

// missed notes that a node is missing and tells how much of its quarantine is left.
func (r *reconciler) missed(node string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	if _, ok := r.missing[node]; !ok {
		r.missing[node] = now
	}
	return r.missing[node].Add(quarantine).Sub(now)
}

// found forgets that a node was missing.
func (r *reconciler) found(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.missing, node)
}
