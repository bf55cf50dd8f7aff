package replicaset

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/controller"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
)

// Limits of acting.
const (
	// parallel is how many pods of one set are created or deleted at a time.
	parallel = 32
	// availabilitySlack is waited beyond the second a pod becomes available, because readiness is stored in whole seconds.
	availabilitySlack = 50 * time.Millisecond
)

// reconciler runs passes over ReplicaSets.
type reconciler struct {
	cache  *cache.Cache
	client kubernetes.Interface
	clock  kube.Clock
	events record.EventRecorder
	pods   controller.PodControlInterface
}

// Reconcile implements kube.Reconciler: claim pods, act on their number, write the status if it differs.
func (r *reconciler) Reconcile(ctx context.Context, key kube.Key) (kube.Action, error) {
	set, ok := cache.Get[*appsv1.ReplicaSet](r.cache, key.Namespace, key.Name)
	if !ok {
		return kube.None(), nil
	}
	o, err := r.observe(ctx, set)
	if err != nil {
		return kube.None(), fmt.Errorf("cannot claim pods of replica set %s/%s: %w", set.Namespace, set.Name, err)
	}
	acted := r.act(ctx, o, decide(o))
	if err := r.writeStatus(ctx, o, acted); err != nil {
		return kube.None(), errors.Join(acted, err)
	}
	if next := nextAvailable(o); next > 0 {
		return kube.Requeue(next + availabilitySlack), acted
	}
	return kube.None(), acted
}

// act creates in batches that double as long as all goes well, so that a set whose pods are refused asks once and not 500 times.
func (r *reconciler) act(ctx context.Context, o observed, d decision) error {
	for batch, left := 1, d.create; left > 0; batch *= 2 {
		n := min(batch, left)
		if err := kube.Parallel(ctx, parallel, n, func(ctx context.Context, _ int) error { return r.create(ctx, o.set) }); err != nil {
			return err
		}
		left -= n
	}
	return kube.Parallel(ctx, parallel, len(d.remove), func(ctx context.Context, i int) error {
		return r.remove(ctx, o.set, d.remove[i])
	})
}

func (r *reconciler) create(ctx context.Context, set *appsv1.ReplicaSet) error {
	err := r.pods.CreatePods(ctx, set.Namespace, &set.Spec.Template, set, metav1.NewControllerRef(set, kind.GroupVersionKind()))
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil // every create is refused until the namespace is gone, and the set with it
	}
	return err
}

func (r *reconciler) remove(ctx context.Context, set *appsv1.ReplicaSet, pod *corev1.Pod) error {
	err := r.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *metav1.NewPreconditionDeleteOptions(string(pod.UID)))
	switch {
	case err == nil:
		r.events.Eventf(set, corev1.EventTypeNormal, controller.SuccessfulDeletePodReason, "Deleted pod: %v", pod.Name)
		return nil
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		return nil // somebody else was faster
	}
	r.events.Eventf(set, corev1.EventTypeWarning, controller.FailedDeletePodReason, "Error deleting: %v", err)
	return fmt.Errorf("cannot delete pod %s/%s: %w", pod.Namespace, pod.Name, err)
}

func (r *reconciler) writeStatus(ctx context.Context, o observed, acted error) error {
	status := statusOf(o, acted)
	if sameStatus(o.set.Status, status) {
		return nil
	}
	changed := o.set.DeepCopy()
	changed.Status = status
	_, err := r.client.AppsV1().ReplicaSets(changed.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	return err
}
