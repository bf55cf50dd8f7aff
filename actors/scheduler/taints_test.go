package scheduler

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func tainted(keys ...string) func(*v1.Node) {
	return func(n *v1.Node) {
		for _, key := range keys {
			n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: key, Effect: v1.TaintEffectNoSchedule})
		}
	}
}

func condition(kind v1.NodeConditionType, status v1.ConditionStatus) func(*v1.Node) {
	return func(n *v1.Node) {
		n.Status.Conditions = append(n.Status.Conditions, v1.NodeCondition{Type: kind, Status: status})
	}
}

func TestRetaint(t *testing.T) {
	unsure := func(n *v1.Node) { n.Status.Conditions[0].Status = v1.ConditionUnknown }
	down := func(n *v1.Node) { n.Status.Conditions[0].Status = v1.ConditionFalse }
	for name, tc := range map[string]struct {
		change []func(*v1.Node)
		ready  bool
		want   []string
	}{
		"ready":                    {nil, true, nil},
		"ready, still tainted":     {[]func(*v1.Node){tainted(v1.TaintNodeNotReady, "mine")}, true, []string{"mine"}},
		"down":                     {[]func(*v1.Node){down}, false, []string{v1.TaintNodeNotReady}},
		"silent":                   {[]func(*v1.Node){unsure}, false, []string{v1.TaintNodeUnreachable}},
		"stored ready, but silent": {nil, false, []string{v1.TaintNodeUnreachable}},
		"silent, was down":         {[]func(*v1.Node){unsure, tainted(v1.TaintNodeNotReady)}, false, []string{v1.TaintNodeUnreachable}},
		"cordoned":                 {[]func(*v1.Node){func(n *v1.Node) { n.Spec.Unschedulable = true }}, true, []string{v1.TaintNodeUnschedulable}},
		"pressed":                  {[]func(*v1.Node){condition(v1.NodeDiskPressure, v1.ConditionTrue)}, true, []string{v1.TaintNodeDiskPressure}},
		"not pressed":              {[]func(*v1.Node){condition(v1.NodeDiskPressure, v1.ConditionFalse)}, true, nil},
	} {
		n := testNode("n", "1")
		for _, f := range tc.change {
			f(n)
		}
		before := keysOf(n.Spec.Taints)
		taints, changed := retaint(n, tc.ready, metav1.Time{})
		if got := keysOf(taints); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
		if want := !slices.Equal(before, tc.want); changed != want {
			t.Errorf("%s: changed is %v", name, changed)
		}
	}
}

func keysOf(taints []v1.Taint) (keys []string) {
	for _, t := range taints {
		keys = append(keys, t.Key)
	}
	return keys
}

// TestNewNodeIsUntainted: the taint that every new node gets goes when the node is ready, and the pods come.
func TestNewNodeIsUntainted(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := testNode("n", "2")
		tainted(v1.TaintNodeNotReady)(n)
		n.Status.Conditions = nil
		w.nodeFailures = 2
		w.putNode(n)
		w.putPod(testPod("p", 0))
		play(t, w)
		if pass(time.Minute); w.pod("p").Spec.NodeName != "" {
			t.Fatal("bound to a node that has not said it is ready")
		}
		n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
		w.putNode(n)
		if pass(backoffLast); w.pod("p").Spec.NodeName != "n" {
			t.Error("not bound after the node became ready")
		}
		before := w.writes.Load()
		if pass(long); w.writes.Load() != before {
			t.Errorf("%d writes at rest", w.writes.Load()-before)
		}
	})
}
