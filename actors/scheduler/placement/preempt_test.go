package placement

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func priority(value int32) func(*v1.Pod) { return func(p *v1.Pod) { p.Spec.Priority = &value } }

func nobody(*v1.Pod) bool { return false }

func victimsOf(e Eviction) (list []string) {
	for _, p := range e.Victims {
		list = append(list, p.Name)
	}
	return list
}

func TestPreemptionTakesTheLeastHarmfulNode(t *testing.T) {
	c := given([]*v1.Node{makeNode("a"), makeNode("b"), makeNode("c", cordoned)},
		makePod("a1", on("a"), requests(v1.ResourceCPU, "4"), priority(5)),
		makePod("b1", on("b"), requests(v1.ResourceCPU, "2"), priority(3)),
		makePod("b2", on("b"), requests(v1.ResourceCPU, "1"), priority(1)),
		makePod("c1", on("c"), requests(v1.ResourceCPU, "4"), priority(0)))
	d := c.Compile(makePod("vip", requests(v1.ResourceCPU, "2"), priority(10)))
	if got := c.Place(d); got.Node != "" {
		t.Fatalf("placed on %s without making room", got.Node)
	}
	e, ok := c.Preempt(d, nobody)
	if !ok || e.Node != "b" || len(e.Victims) != 1 || e.Victims[0].Name != "b2" {
		t.Fatalf("got %v on %q, want b2 on b", victimsOf(e), e.Node)
	}
	if _, again := c.Preempt(d, nobody); again {
		t.Error("more pods are evicted while the first ones are leaving")
	}
	c.DeletePod("uid-b2")
	if got := c.mustPlace(t, d.Pod()); got != "b" {
		t.Errorf("placed on %s after room was made on b", got)
	}
}

// TestRoomIsKept: a pod of lower priority does not slip into the room that is being made.
func TestRoomIsKept(t *testing.T) {
	c := given([]*v1.Node{makeNode("a")}, makePod("old", on("a"), requests(v1.ResourceCPU, "4")))
	vip := c.Compile(makePod("vip", requests(v1.ResourceCPU, "4"), priority(10)))
	if _, ok := c.Preempt(vip, nobody); !ok {
		t.Fatal("no room can be made")
	}
	c.DeletePod("uid-old")
	small := makePod("small", requests(v1.ResourceCPU, "1"))
	if d := c.Place(c.Compile(small)); d.Node != "" {
		t.Error("the room was given to a pod of lower priority")
	}
	c.mustPlace(t, makePod("boss", requests(v1.ResourceCPU, "1"), priority(20)))
	c.DeletePod("uid-vip")
	c.mustPlace(t, small)
}

func TestNoPreemption(t *testing.T) {
	never := v1.PreemptNever
	for name, tc := range map[string]struct {
		pod        func(*v1.Pod)
		preemption string
	}{
		"equal priority":    {priority(1), "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."},
		"policy never":      {func(p *v1.Pod) { priority(9)(p); p.Spec.PreemptionPolicy = &never }, "preemption: not eligible due to preemptionPolicy=Never."},
		"wrong node anyway": {func(p *v1.Pod) { priority(9)(p); selects("x", "y")(p) }, "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."},
	} {
		t.Run(name, func(t *testing.T) {
			c := given([]*v1.Node{makeNode("a")}, makePod("old", on("a"), requests(v1.ResourceCPU, "4"), priority(1)))
			d := c.Compile(makePod("new", requests(v1.ResourceCPU, "1"), tc.pod))
			if got := c.Place(d).Preemption; got != tc.preemption {
				t.Errorf("got %q, want %q", got, tc.preemption)
			}
			if e, ok := c.Preempt(d, nobody); ok {
				t.Errorf("%v would be evicted", victimsOf(e))
			}
		})
	}
}

// TestGuardedPodsStay: of two equal nodes the one whose pods may be disturbed pays, and the younger of two pods goes.
func TestGuardedPodsStay(t *testing.T) {
	started := func(second int64) func(*v1.Pod) {
		return func(p *v1.Pod) { at := metav1.Unix(second, 0); p.Status.StartTime = &at }
	}
	c := given([]*v1.Node{makeNode("a"), makeNode("b")},
		makePod("a1", on("a"), requests(v1.ResourceCPU, "4")),
		makePod("b1", on("b"), requests(v1.ResourceCPU, "2"), started(1)),
		makePod("b2", on("b"), requests(v1.ResourceCPU, "2"), started(2)))
	e, _ := c.Preempt(c.Compile(makePod("vip", requests(v1.ResourceCPU, "2"), priority(10))), func(p *v1.Pod) bool { return p.Name == "a1" })
	if e.Node != "b" || len(e.Victims) != 1 || e.Victims[0].Name != "b2" {
		t.Errorf("got %v on %q, want b2 on b", victimsOf(e), e.Node)
	}
}

func TestSparedVictimCanBeChosenAgain(t *testing.T) {
	c := given([]*v1.Node{makeNode("a")}, makePod("old", on("a"), requests(v1.ResourceCPU, "4")))
	d := c.Compile(makePod("vip", requests(v1.ResourceCPU, "1"), priority(10)))
	c.Preempt(d, nobody)
	c.Spare("uid-old")
	if _, ok := c.Preempt(d, nobody); !ok {
		t.Error("a victim whose deletion failed is never tried again")
	}
}
