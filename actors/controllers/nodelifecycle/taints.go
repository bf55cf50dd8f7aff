package nodelifecycle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// owned are the keys of the taints this controller sets and takes away; all others are their users'.
var owned = []string{
	corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeUnschedulable, corev1.TaintNodeMemoryPressure,
	corev1.TaintNodeDiskPressure, corev1.TaintNodePIDPressure, corev1.TaintNodeNetworkUnavailable,
}

// pressures are the conditions that keep new pods away while they are true.
var pressures = []struct {
	condition corev1.NodeConditionType
	taint     string
}{
	{corev1.NodeMemoryPressure, corev1.TaintNodeMemoryPressure},
	{corev1.NodeDiskPressure, corev1.TaintNodeDiskPressure},
	{corev1.NodePIDPressure, corev1.TaintNodePIDPressure},
	{corev1.NodeNetworkUnavailable, corev1.TaintNodeNetworkUnavailable},
}

// taints gives the taints a node should have: users' own as they are, ours by its conditions. A taint that is there keeps its
// time, by which tolerated seconds count; one that evicts and has none gets it.
func taints(o observed, conditions []corev1.NodeCondition) []corev1.Taint {
	var result []corev1.Taint
	wanted := wantedTaints(o.node, conditions)
	at := metav1.NewTime(o.now)
	for _, taint := range o.node.Spec.Taints {
		i := slices.IndexFunc(wanted, func(w corev1.Taint) bool { return w.MatchTaint(&taint) })
		if i < 0 && ours(taint) {
			continue
		}
		if i >= 0 {
			wanted = slices.Delete(wanted, i, i+1)
		}
		if taint.TimeAdded == nil && taint.Effect == corev1.TaintEffectNoExecute {
			taint.TimeAdded = &at
		}
		result = append(result, taint)
	}
	for _, taint := range wanted {
		taint.TimeAdded = &at
		result = append(result, taint)
	}
	return result
}

// ours tells whether a taint is one that this controller takes away.
func ours(taint corev1.Taint) bool {
	evicts := taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable
	return slices.Contains(owned, taint.Key) && (taint.Effect == corev1.TaintEffectNoSchedule || evicts && taint.Effect == corev1.TaintEffectNoExecute)
}

func wantedTaints(node *corev1.Node, conditions []corev1.NodeCondition) []corev1.Taint {
	var wanted []corev1.Taint
	add := func(key string, effects ...corev1.TaintEffect) {
		for _, effect := range effects {
			wanted = append(wanted, corev1.Taint{Key: key, Effect: effect})
		}
	}
	switch readiness(conditions) {
	case "": // a kubelet that has not spoken yet
		add(corev1.TaintNodeNotReady, corev1.TaintEffectNoSchedule)
	case corev1.ConditionFalse:
		add(corev1.TaintNodeNotReady, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute)
	case corev1.ConditionUnknown:
		add(corev1.TaintNodeUnreachable, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute)
	}
	for _, pressure := range pressures {
		for _, c := range conditions {
			if c.Type == pressure.condition && c.Status == corev1.ConditionTrue {
				add(pressure.taint, corev1.TaintEffectNoSchedule)
			}
		}
	}
	if node.Spec.Unschedulable {
		add(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)
	}
	return wanted
}
