package placement

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const huge = "9223372036854775807"

func TestSecondPodThatDoesNotFitStaysOut(t *testing.T) {
	c := given([]*v1.Node{makeNode("a")})
	first, second := makePod("first", requests(v1.ResourceCPU, "3")), makePod("second", requests(v1.ResourceCPU, "3"))
	c.Assume(c.Compile(first), c.mustPlace(t, first))
	if d := c.Place(c.Compile(second)); d.Node != "" {
		t.Fatal("an assumed pod does not count")
	}
	// An older reading of the first pod, from before its binding, must not free its room.
	if c.Observe(first) {
		t.Error("a reading from before the binding freed the room")
	}
	if d := c.Place(c.Compile(second)); d.Node != "" {
		t.Fatal("an assumed pod was forgotten")
	}
	if !c.Forget(first.UID) {
		t.Error("forgetting an assumed pod freed nothing")
	}
	c.mustPlace(t, second)
}

// TestRoomComesBack covers each way in which a pod stops taking room.
func TestRoomComesBack(t *testing.T) {
	running := makePod("p", on("a"), requests(v1.ResourceCPU, "3"))
	for name, end := range map[string]func(c *Cluster) bool{
		"deleted":   func(c *Cluster) bool { return c.DeletePod(running.UID) },
		"succeeded": func(c *Cluster) bool { p := running.DeepCopy(); p.Status.Phase = v1.PodSucceeded; return c.Observe(p) },
		"failed":    func(c *Cluster) bool { p := running.DeepCopy(); p.Status.Phase = v1.PodFailed; return c.Observe(p) },
	} {
		t.Run(name, func(t *testing.T) {
			c := given([]*v1.Node{makeNode("a")}, running)
			if !end(c) {
				t.Error("nothing was freed")
			}
			c.mustPlace(t, makePod("next", requests(v1.ResourceCPU, "3")))
			if end(c) {
				t.Error("the same room was freed twice")
			}
		})
	}
}

func TestObservedPodIsNotForgotten(t *testing.T) {
	c := given([]*v1.Node{makeNode("a")})
	p := makePod("p", requests(v1.ResourceCPU, "3"))
	c.Assume(c.Compile(p), "a")
	bound := p.DeepCopy()
	bound.Spec.NodeName, bound.ResourceVersion = "a", "2"
	c.Observe(bound)
	if c.Forget(p.UID) {
		t.Error("a pod that is known to be bound was forgotten")
	}
}

// TestBoundElsewhere: another scheduler was faster.
func TestBoundElsewhere(t *testing.T) {
	c := given([]*v1.Node{makeNode("a"), makeNode("b", cordoned)})
	p := makePod("p", requests(v1.ResourceCPU, "3"))
	c.Assume(c.Compile(p), "a")
	bound := p.DeepCopy()
	bound.Spec.NodeName = "b"
	if !c.Observe(bound) {
		t.Error("the room on the node that was not taken is not reported free")
	}
	if got := c.mustPlace(t, makePod("q", requests(v1.ResourceCPU, "4"))); got != "a" {
		t.Errorf("placed on %s", got)
	}
}

// TestPodsBeforeTheirNode are on the books when the node appears, and again when it comes back.
func TestPodsBeforeTheirNode(t *testing.T) {
	c := given(nil, makePod("early", on("a"), requests(v1.ResourceCPU, "3")))
	big := makePod("big", requests(v1.ResourceCPU, "3"))
	for range 2 {
		c.SetNode(makeNode("a"))
		if d := c.Place(c.Compile(big)); d.Node != "" {
			t.Fatal("the pod that was bound before its node was seen does not count")
		}
		c.DeleteNode("a")
		if c.Nodes() != 0 {
			t.Fatal("a deleted node still counts")
		}
	}
	c.DeletePod("uid-early")
	if len(c.nodes) != 0 {
		t.Error("a node without object and pods is kept")
	}
}

func TestHelpfulNodeChanges(t *testing.T) {
	c := given([]*v1.Node{makeNode("a", cordoned, taint("x", v1.TaintEffectNoSchedule))})
	same := makeNode("a", cordoned, taint("x", v1.TaintEffectNoSchedule))
	same.Status.Conditions[0].LastHeartbeatTime = metav1.Unix(1, 0)
	if c.SetNode(same) {
		t.Error("a heartbeat counts as help")
	}
	for name, change := range map[string]func(*v1.Node){
		"uncordoned": func(n *v1.Node) { n.Spec.Unschedulable = false },
		"untainted":  func(n *v1.Node) { n.Spec.Taints = nil },
		"labelled":   label("disk", "ssd"),
		"grown":      offers(v1.ResourceCPU, "8"),
	} {
		c.SetNode(same)
		changed := same.DeepCopy()
		change(changed)
		if !c.SetNode(changed) {
			t.Errorf("%s does not count as help", name)
		}
	}
}

func TestReviewFollowsReadiness(t *testing.T) {
	alive := true
	c := NewCluster(func(*v1.Node) bool { return alive }, nil)
	c.SetNode(makeNode("a"))
	alive = false
	if changed, helpful := c.Review(); helpful || len(changed) != 1 || c.Unready() != 1 {
		t.Errorf("a node fell silent: changed %d, helpful %v, unready %d", len(changed), helpful, c.Unready())
	}
	if d := c.Place(c.Compile(makePod("p"))); d.Message != "0/1 nodes are available: 1 node(s) were not ready." {
		t.Errorf("got %+v", d)
	}
	alive = true
	if changed, helpful := c.Review(); !helpful || len(changed) != 1 || c.Unready() != 0 {
		t.Errorf("a node came back: changed %d, helpful %v, unready %d", len(changed), helpful, c.Unready())
	}
	c.mustPlace(t, makePod("p"))
}

// TestAbsurdRequests: sums that would wrap make a node full, not empty, and it recovers.
func TestAbsurdRequests(t *testing.T) {
	c := given([]*v1.Node{makeNode("a")},
		makePod("x", on("a"), requests(v1.ResourceMemory, huge)), makePod("y", on("a"), requests(v1.ResourceMemory, huge)))
	small := makePod("small", requests(v1.ResourceMemory, "1Mi"))
	if d := c.Place(c.Compile(small)); d.Node != "" {
		t.Fatal("an overflowing sum made room")
	}
	c.DeletePod("uid-x")
	if d := c.Place(c.Compile(small)); d.Node != "" {
		t.Fatal("a pod that fills the node was forgotten")
	}
	c.DeletePod("uid-y")
	c.mustPlace(t, small)
}
