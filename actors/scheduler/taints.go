package scheduler

import (
	"context"
	"encoding/json"
	"slices"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The API server taints each new node as not ready, so that nothing is placed there too early, and counts on somebody who knows the
// node's state to take the taint off. The scheduler judges that state anyway, so it keeps these taints true.

// conditionTaints says which condition in which status is mirrored in which taint.
var conditionTaints = []struct {
	condition v1.NodeConditionType
	status    v1.ConditionStatus
	key       string
}{
	{v1.NodeMemoryPressure, v1.ConditionTrue, v1.TaintNodeMemoryPressure},
	{v1.NodeDiskPressure, v1.ConditionTrue, v1.TaintNodeDiskPressure},
	{v1.NodePIDPressure, v1.ConditionTrue, v1.TaintNodePIDPressure},
	{v1.NodeNetworkUnavailable, v1.ConditionTrue, v1.TaintNodeNetworkUnavailable},
}

// keptKeys are the taints that are kept true here; all others belong to people.
var keptKeys = []string{
	v1.TaintNodeNotReady, v1.TaintNodeUnreachable, v1.TaintNodeUnschedulable,
	v1.TaintNodeMemoryPressure, v1.TaintNodeDiskPressure, v1.TaintNodePIDPressure, v1.TaintNodeNetworkUnavailable,
}

func kept(t v1.Taint) bool {
	return t.Effect == v1.TaintEffectNoSchedule && slices.Contains(keptKeys, t.Key)
}

// wantedKeys are the taints that the node's state calls for.
func wantedKeys(n *v1.Node, ready bool) []string {
	var keys []string
	if !ready {
		keys = append(keys, unreadyKey(n))
	}
	if n.Spec.Unschedulable {
		keys = append(keys, v1.TaintNodeUnschedulable)
	}
	for _, m := range conditionTaints {
		if c := conditionOf(n, m.condition); c != nil && c.Status == m.status {
			keys = append(keys, m.key)
		}
	}
	return keys
}

// unreadyKey tells a node that says it is not ready from one that says nothing any more.
func unreadyKey(n *v1.Node) string {
	if c := conditionOf(n, v1.NodeReady); c != nil && c.Status != v1.ConditionFalse {
		return v1.TaintNodeUnreachable
	}
	return v1.TaintNodeNotReady
}

func conditionOf(n *v1.Node, kind v1.NodeConditionType) *v1.NodeCondition {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == kind {
			return &n.Status.Conditions[i]
		}
	}
	return nil
}

// retaint gives the node's taints as they should be; changed is false when they are so already.
func retaint(n *v1.Node, ready bool, now metav1.Time) (taints []v1.Taint, changed bool) {
	wanted := wantedKeys(n, ready)
	for _, t := range n.Spec.Taints {
		if !kept(t) {
			taints = append(taints, t)
			continue
		}
		if i := slices.Index(wanted, t.Key); i >= 0 {
			wanted = slices.Delete(wanted, i, i+1)
			taints = append(taints, t)
			continue
		}
		changed = true
	}
	for _, key := range wanted {
		taints = append(taints, v1.Taint{Key: key, Effect: v1.TaintEffectNoSchedule, TimeAdded: &now})
		changed = true
	}
	return taints, changed
}

// keepTaints has the node's taints written when they are not what its state calls for. The write applies to the version that was judged
// only; what changes the node meanwhile brings it here again.
func (s *scheduler) keepTaints(n *v1.Node) {
	taints, changed := retaint(n, s.nodeReady(n), metav1.NewTime(s.now))
	if !changed || s.retainted[n.Name] == n.ResourceVersion {
		return
	}
	s.retainted[n.Name] = n.ResourceVersion
	patch, _ := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": n.ResourceVersion},
		"spec":     map[string]any{"taints": taints},
	})
	nodes, name := s.deps.NodeClient.CoreV1().Nodes(), n.Name
	s.reports.add(func(ctx context.Context) any {
		_, err := nodes.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		return retainted{name, err}
	}, s.now)
}

// retainted is the outcome of writing a node's taints.
type retainted struct {
	node string
	err  error
}

// absorbRetainted sees to it that a write which failed is tried again at the next review.
func (s *scheduler) absorbRetainted(r retainted) {
	if r.err != nil && !apierrors.IsNotFound(r.err) {
		delete(s.retainted, r.node)
		s.mistainted[r.node] = true
	}
}

// retryTaints writes the taints again whose writing failed.
func (s *scheduler) retryTaints() {
	for name := range s.mistainted {
		delete(s.mistainted, name)
		if n := s.cluster.Node(name); n != nil {
			s.keepTaints(n)
		}
	}
}
