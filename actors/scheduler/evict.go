package scheduler

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// evicted is the outcome of evicting one pod.
type evicted struct {
	victim types.UID
	err    error
}

// evict has the victim deleted in favour of another pod; its condition says why before it goes.
func (s *scheduler) evict(victim, favoured *v1.Pod, node string) {
	message := fmt.Sprintf("%s: preempting to accommodate a higher priority pod", s.deps.Name)
	condition := v1.PodCondition{
		Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler, Message: message,
		LastTransitionTime: metav1.NewTime(s.now), ObservedGeneration: victim.Generation,
	}
	pods, patch, uid := s.deps.Client.CoreV1().Pods(victim.Namespace), statusPatch(victim, condition, ""), victim.UID
	s.evicts.add(func(ctx context.Context) any {
		// Without the condition the eviction is less well explained, but as necessary.
		_, _ = pods.Patch(ctx, victim.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		return evicted{uid, pods.Delete(ctx, victim.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})}
	}, s.now)
	s.tell(victim, v1.EventTypeNormal, "Preempted", fmt.Sprintf("Preempted by pod %s on node %s", favoured.UID, node))
}
