package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const long = 10 * time.Minute

// TestBindsABurst places 500 pods over 20 nodes, says so once for each, and is then at rest.
func TestBindsABurst(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		for i := range 20 {
			w.putNode(testNode(fmt.Sprintf("n%02d", i), "64"))
		}
		play(t, w)
		for i := range 500 {
			w.putPod(withCPU(testPod(fmt.Sprintf("p%03d", i), 0), "10m"))
		}
		pass(time.Second)
		if got := w.bound(); got != 500 {
			t.Fatalf("%d of 500 pods are bound", got)
		}
		if node := w.overcommitted(); node != "" {
			t.Errorf("%s is overcommitted", node)
		}
		pass(eventLinger)
		if got := len(w.events); got != 500 {
			t.Errorf("%d Events for 500 pods", got)
		}
		before := w.writes.Load()
		if before != 1000 {
			t.Errorf("%d writes for 500 bindings and 500 Events", before)
		}
		if pass(long); w.writes.Load() != before {
			t.Errorf("%d writes at rest", w.writes.Load()-before)
		}
	})
}

// TestSaysWhyOnce: a pod that fits nowhere gets one condition and one Event however often it is tried, and a node that fits it later.
func TestSaysWhyOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.putNode(testNode("small", "1"))
		w.putPod(withCPU(testPod("big", 0), "2"))
		play(t, w)
		pass(long)
		c := scheduledCondition(w.pod("big"))
		want := "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
		if c == nil || c.Status != v1.ConditionFalse || c.Reason != v1.PodReasonUnschedulable || c.Message != want {
			t.Fatalf("condition %+v", c)
		}
		if got := w.eventsFor("big"); !slices.Equal(got, []string{"FailedScheduling"}) {
			t.Errorf("Events %v", got)
		}
		if got := w.writes.Load(); got != 2 {
			t.Errorf("%d writes in %v for one pod that fits nowhere", got, long)
		}
		w.putNode(testNode("large", "4"))
		pass(backoffLast)
		if got := w.pod("big").Spec.NodeName; got != "large" {
			t.Errorf("bound to %q after a node with room came", got)
		}
	})
}

// TestFreedRoomIsUsed: the second pod that does not fit waits for the first to end.
func TestFreedRoomIsUsed(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.putNode(testNode("n", "2"))
		play(t, w)
		w.putPod(withCPU(testPod("first", 0), "2"))
		pass(time.Second)
		w.putPod(withCPU(testPod("second", 0), "2"))
		if pass(time.Minute); w.pod("first").Spec.NodeName != "n" || w.pod("second").Spec.NodeName != "" {
			t.Fatal("both or the wrong one of two pods that do not fit together were bound")
		}
		if err := w.deletePod("first"); err != nil {
			t.Fatal(err)
		}
		if pass(backoffLast); w.pod("second").Spec.NodeName != "n" {
			t.Error("the room that came free is not used")
		}
	})
}

func TestNotItsPods(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.putNode(testNode("n", "2"))
		gated, foreign, leaving, ended := testPod("gated", 0), testPod("foreign", 0), testPod("leaving", 0), testPod("ended", 0)
		gated.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "example.com/wait"}}
		foreign.Spec.SchedulerName = "another"
		leaving.DeletionTimestamp = &leaving.CreationTimestamp
		ended.Status.Phase = v1.PodFailed
		for _, p := range []*v1.Pod{gated, foreign, leaving, ended} {
			w.putPod(p)
		}
		play(t, w)
		if pass(long); w.bound() != 0 || w.writes.Load() != 0 {
			t.Fatalf("%d pods bound, %d writes", w.bound(), w.writes.Load())
		}
		gated.Spec.SchedulingGates = nil
		w.putPod(gated)
		if pass(time.Second); w.pod("gated").Spec.NodeName != "n" {
			t.Error("not bound after its gate was lifted")
		}
	})
}

func TestNoNodesNothingWritten(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.putPod(testPod("p", 0))
		play(t, w)
		if pass(long); w.writes.Load() != 0 {
			t.Errorf("%d writes without any node", w.writes.Load())
		}
		w.putNode(testNode("n", "2"))
		if pass(time.Second); w.pod("p").Spec.NodeName != "n" {
			t.Error("not bound after the first node came")
		}
	})
}

// TestFailedBindings are tried again, and give their room back meanwhile.
func TestFailedBindings(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.putNode(testNode("n", "2"))
		failures := map[string]int{"flaky": 3}
		w.refuse = func(pod string) error {
			if failures[pod]--; failures[pod] >= 0 {
				return apierrors.NewInternalError(errors.New("the store is away"))
			}
			return nil
		}
		w.putPod(withCPU(testPod("flaky", 0), "2"))
		play(t, w)
		pass(100 * time.Millisecond)
		w.putPod(withCPU(testPod("other", 0), "2"))
		if pass(500 * time.Millisecond); w.pod("other").Spec.NodeName != "n" {
			t.Error("the room of a binding that failed is not free")
		}
		if err := w.deletePod("other"); err != nil {
			t.Fatal(err)
		}
		if pass(time.Minute); w.pod("flaky").Spec.NodeName != "n" {
			t.Error("not tried again after its binding failed")
		}
	})
}

// TestConflictIsNotTheEnd: a conflict that goes away leaves the pod bound in the end.
func TestConflictIsNotTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.putNode(testNode("n", "2"))
		conflicts := 1
		w.refuse = func(pod string) error {
			if conflicts--; conflicts >= 0 {
				return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, pod, errors.New("try again"))
			}
			return nil
		}
		w.putPod(testPod("p", 0))
		play(t, w)
		if pass(time.Minute); w.pod("p").Spec.NodeName != "n" {
			t.Error("not bound after a conflict")
		}
	})
}

// TestLostChanges: what happened while changes were lost is found by listing again.
func TestLostChanges(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.putNode(testNode("n", "2"))
		play(t, w)
		w.putPod(withCPU(testPod("first", 0), "2"))
		pass(time.Second)
		w.mu.Lock()
		delete(w.pods, "first")
		w.mu.Unlock()
		w.lose()
		w.putPod(withCPU(testPod("second", 0), "2"))
		if pass(time.Minute); w.pod("second").Spec.NodeName != "n" {
			t.Error("the deletion that was lost is not made up for")
		}
	})
}

// TestMakesRoom evicts the pod of lower priority, tells why, and uses the room.
func TestMakesRoom(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.putNode(testNode("n", "2"))
		play(t, w)
		w.putPod(withCPU(testPod("low", 0), "2"))
		pass(time.Second)
		w.putPod(withCPU(testPod("high", 1000), "2"))
		pass(time.Minute)
		if w.pod("low") != nil || w.pod("high").Spec.NodeName != "n" {
			t.Fatalf("low is there: %v, high is on %q", w.pod("low") != nil, w.pod("high").Spec.NodeName)
		}
		if got := w.eventsFor("low"); !slices.Contains(got, "Preempted") {
			t.Errorf("Events of the evicted pod: %v", got)
		}
	})
}

// TestReadinessByTime: a node that is judged ready later, without any change of its object, is used.
func TestReadinessByTime(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		began := time.Now()
		w.putNode(testNode("n", "2"))
		w.putPod(testPod("p", 0))
		play(t, w, func(d *Deps) {
			d.NodeReady = func(_ *v1.Node, now time.Time) bool { return now.Sub(began) > time.Minute }
		})
		if pass(30 * time.Second); w.pod("p").Spec.NodeName != "" {
			t.Fatal("bound to a node that is not ready")
		}
		if pass(time.Minute); w.pod("p").Spec.NodeName != "n" {
			t.Error("not bound after the node became ready")
		}
	})
}

// TestPriorityFirst: with room for one, the more important pod gets it although it came later.
func TestPriorityFirst(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.putPod(withCPU(testPod("low", 0), "2"))
		w.putPod(withCPU(testPod("high", 10), "2"))
		play(t, w)
		pass(time.Second)
		w.putNode(testNode("n", "2"))
		if pass(time.Second); w.pod("high").Spec.NodeName != "n" || w.pod("low").Spec.NodeName != "" {
			t.Error("the less important pod was placed first")
		}
	})
}
