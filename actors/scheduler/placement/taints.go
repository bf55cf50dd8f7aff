package placement

import (
	v1 "k8s.io/api/core/v1"
	corehelpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
)

// tolerates tells whether the pod tolerates the taint.
func tolerates(pod *v1.Pod, taint *v1.Taint) bool {
	return corehelpers.TolerationsTolerateTaint(klog.Logger{}, pod.Spec.Tolerations, taint, false)
}

// toleratesAll tells whether none of the taints keeps the pod away.
func toleratesAll(pod *v1.Pod, taints []v1.Taint) bool {
	for i := range taints {
		if !tolerates(pod, &taints[i]) {
			return false
		}
	}
	return true
}

// splitTaints separates the taints that keep pods away from those that only make a node less liked.
func splitTaints(taints []v1.Taint) (hard, soft []v1.Taint) {
	for _, t := range taints {
		switch t.Effect {
		case v1.TaintEffectPreferNoSchedule:
			soft = append(soft, t)
		case v1.TaintEffectNoSchedule, v1.TaintEffectNoExecute:
			hard = append(hard, t)
		}
	}
	return hard, soft
}

// softUntolerated counts the taints that the pod does not tolerate among those that only advise against the node.
func softUntolerated(pod *v1.Pod, soft []v1.Taint) (count int64) {
	for i := range soft {
		if !tolerates(pod, &soft[i]) {
			count++
		}
	}
	return count
}
