package nodelifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// grace is how long a node may be silent before it counts as unknown.
	grace = 40 * time.Second
	// slack is waited beyond a moment, because stored times are in whole seconds.
	slack = time.Second
)

// observed is what one judgement is made from. Objects are shared and not changed.
type observed struct {
	node *corev1.Node
	// pods are those placed on the node.
	pods []*corev1.Pod
	// heard is when the node was last heard of.
	heard time.Time
	now   time.Time
}

// judgement is what to do about a node.
type judgement struct {
	// conditions and taints are those wanted.
	conditions []corev1.NodeCondition
	taints     []corev1.Taint
	// silent are pods whose readiness nobody reports any more.
	silent []*corev1.Pod
	// evict are pods that may stay no longer.
	evict []*corev1.Pod
	// after is when to look again.
	after time.Duration
}

// decide judges one node.
func decide(o observed) judgement {
	j := judgement{conditions: o.node.Status.Conditions}
	left := o.heard.Add(grace).Sub(o.now)
	if left <= 0 {
		j.conditions = unknown(o)
	} else {
		j.after = left + slack
	}
	ready := readiness(j.conditions)
	j.taints = taints(o, j.conditions)
	if ready == corev1.ConditionUnknown {
		j.silent = stillReady(o.pods)
	}
	wait := time.Duration(0)
	j.evict, wait = evictions(o, j.taints)
	if wait > 0 && (j.after == 0 || wait < j.after) {
		j.after = wait
	}
	return j
}

// watched are the conditions a silent kubelet no longer answers for.
var watched = []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure}

// unknown gives the conditions of a silent node.
func unknown(o observed) []corev1.NodeCondition {
	conditions := slices.Clone(o.node.Status.Conditions)
	at := metav1.NewTime(o.now)
	for _, kind := range watched {
		i := slices.IndexFunc(conditions, func(c corev1.NodeCondition) bool { return c.Type == kind })
		switch {
		case i < 0:
			conditions = append(conditions, corev1.NodeCondition{
				Type: kind, Status: corev1.ConditionUnknown, Reason: "NodeStatusNeverUpdated", Message: "Kubelet never posted node status.",
				LastHeartbeatTime: o.node.CreationTimestamp, LastTransitionTime: at,
			})
		case conditions[i].Status != corev1.ConditionUnknown:
			conditions[i].Status, conditions[i].LastTransitionTime = corev1.ConditionUnknown, at
			conditions[i].Reason, conditions[i].Message = "NodeStatusUnknown", "Kubelet stopped posting node status."
		}
	}
	return conditions
}

// readiness is the status of the Ready condition, empty when there is none.
func readiness(conditions []corev1.NodeCondition) corev1.ConditionStatus {
	for _, c := range conditions {
		if c.Type == corev1.NodeReady {
			return c.Status
		}
	}
	return ""
}

// stillReady lists the pods that still claim to be ready.
func stillReady(pods []*corev1.Pod) []*corev1.Pod {
	var claiming []*corev1.Pod
	for _, pod := range pods {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				claiming = append(claiming, pod)
			}
		}
	}
	return claiming
}
