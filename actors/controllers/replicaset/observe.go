package replicaset

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/controller"

	"github.com/nodeactor/nodeactor/actors/cache"
)

// observe collects a set's pods, adopting what matches and belongs to nobody and releasing what no longer matches.
func (r *reconciler) observe(ctx context.Context, set *appsv1.ReplicaSet) (observed, error) {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return observed{}, err
	}
	owned, terminating := split(cache.Owned[*corev1.Pod](r.cache, set.UID))
	loose, _ := split(cache.Loose[*corev1.Pod](r.cache, set.Namespace, selector))
	refs := controller.NewPodControllerRefManager(r.pods, set, selector, kind.GroupVersionKind(), r.mayAdopt(set))
	active, err := refs.ClaimPods(ctx, append(owned, loose...))
	if err != nil {
		return observed{}, err
	}
	return observed{
		set: set, active: active, now: r.clock.Now(), related: r.related(set, active),
		terminating: controller.FilterClaimedPods(set, selector, terminating),
	}, nil
}

// mayAdopt asks the API before the first adoption whether the set is still the one that was read and not going away.
func (r *reconciler) mayAdopt(set *appsv1.ReplicaSet) func(context.Context) error {
	return controller.RecheckDeletionTimestamp(func(ctx context.Context) (metav1.Object, error) {
		fresh, err := r.client.AppsV1().ReplicaSets(set.Namespace).Get(ctx, set.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if fresh.UID != set.UID {
			return nil, fmt.Errorf("cannot adopt for replica set %s/%s: it was replaced, uid %s is now %s", set.Namespace, set.Name, set.UID, fresh.UID)
		}
		return fresh, nil
	})
}

// related lists the pods of all sets of the same owner when pods are to be deleted; that is all they are needed for.
func (r *reconciler) related(set *appsv1.ReplicaSet, active []*corev1.Pod) []*corev1.Pod {
	if len(active) <= wanted(set) {
		return nil
	}
	owner := metav1.GetControllerOf(set)
	if owner == nil {
		return active
	}
	var pods []*corev1.Pod
	for _, sibling := range cache.Owned[*appsv1.ReplicaSet](r.cache, owner.UID) {
		pods = append(pods, cache.Owned[*corev1.Pod](r.cache, sibling.UID)...)
	}
	return pods
}
