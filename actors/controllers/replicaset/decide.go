package replicaset

import (
	"slices"
	"sort"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/controller"
)

// burst is the most pods one pass creates or deletes.
const burst = 500

// observed is what one decision is made from. Objects are shared and not changed.
type observed struct {
	set *appsv1.ReplicaSet
	// active are the set's own pods that count: neither finished nor going away.
	active []*corev1.Pod
	// terminating are its own pods on their way out.
	terminating []*corev1.Pod
	// related are the pods of all sets of the same owner, which is how crowded nodes are told.
	related []*corev1.Pod
	now     time.Time
}

// decision is what to do about the number of pods. At most one side is set.
type decision struct {
	create int
	remove []*corev1.Pod
}

// decide compares the pods that count with the wish.
func decide(o observed) decision {
	if o.set.DeletionTimestamp != nil {
		return decision{}
	}
	surplus := len(o.active) - wanted(o.set)
	switch {
	case surplus < 0:
		return decision{create: min(-surplus, burst)}
	case surplus > 0:
		return decision{remove: victims(o, min(surplus, burst))}
	}
	return decision{}
}

func wanted(set *appsv1.ReplicaSet) int {
	if set.Spec.Replicas == nil {
		return 1
	}
	return int(*set.Spec.Replicas)
}

// victims picks the pods to delete in upstream's order: unplaced, pending, not ready, cheap to delete, on crowded nodes, young.
func victims(o observed, n int) []*corev1.Pod {
	pods := slices.Clone(o.active)
	if n < len(pods) {
		crowd := map[string]int{}
		for _, pod := range o.related {
			if controller.IsPodActive(pod) {
				crowd[pod.Spec.NodeName]++
			}
		}
		ranks := make([]int, len(pods))
		for i, pod := range pods {
			ranks[i] = crowd[pod.Spec.NodeName]
		}
		sort.Sort(controller.ActivePodsWithRanks{Pods: pods, Rank: ranks, Now: metav1.NewTime(o.now)})
	}
	return pods[:n]
}

// split sorts a set's pods into those that count and those on their way out.
func split(pods []*corev1.Pod) (active, terminating []*corev1.Pod) {
	for _, pod := range pods {
		switch {
		case controller.IsPodActive(pod):
			active = append(active, pod)
		case controller.IsPodTerminating(pod):
			terminating = append(terminating, pod)
		}
	}
	return active, terminating
}
