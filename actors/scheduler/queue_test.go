package scheduler

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodeactor/nodeactor/actors/scheduler/placement"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func testPod(name string, priority int32) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1"},
		Spec:       v1.PodSpec{SchedulerName: defaultName, Priority: &priority, Containers: []v1.Container{{Name: "c"}}},
	}
}

func offerAll(pods ...*v1.Pod) *queue {
	q, cluster := newQueue(), placement.NewCluster(nil, nil)
	for _, p := range pods {
		q.offer(p, cluster.Compile)
	}
	return q
}

func TestQueueOrder(t *testing.T) {
	q := offerAll(testPod("b", 0), testPod("a", 0), testPod("vip", 100), testPod("gone", 200))
	q.remove("uid-gone")
	for _, want := range []string{"vip", "b", "a"} {
		e := q.next()
		if e.pod().Name != want {
			t.Fatalf("next is %s, want %s", e.pod().Name, want)
		}
		q.move(e, binding)
	}
	if q.next() != nil {
		t.Error("the queue gives out a pod that is being bound")
	}
}

func TestBackoffDoubles(t *testing.T) {
	for attempts, want := range map[int]time.Duration{1: 1, 2: 2, 3: 4, 4: 8, 5: 10, 60: 10} {
		if got := backoff(attempts); got != want*time.Second {
			t.Errorf("after %d attempts the wait is %v, want %v", attempts, got, want*time.Second)
		}
	}
}

// TestHelpRespectsBackoff: a helpful change moves a pod on, but not before its wait is over.
func TestHelpRespectsBackoff(t *testing.T) {
	q := offerAll(testPod("a", 0))
	e := q.next()
	q.failed(e, start, waiting)
	q.release(start, nil)
	if e.state != resting {
		t.Fatalf("state is %d right after a failure, want resting", e.state)
	}
	if in, ok := q.wakeIn(start); !ok || in != backoffFirst {
		t.Errorf("wakes in %v, %v", in, ok)
	}
	q.ripen(start.Add(backoffFirst - 1))
	if e.state != resting {
		t.Error("activated too early")
	}
	q.ripen(start.Add(backoffFirst))
	if q.next() != e {
		t.Error("not activated when the wait was over")
	}
}

func TestFlush(t *testing.T) {
	q := offerAll(testPod("a", 0))
	e := q.next()
	q.failed(e, start, waiting)
	q.ripen(start.Add(flushAfter - 1))
	if e.state != waiting {
		t.Error("flushed too early")
	}
	if q.ripen(start.Add(flushAfter)); e.state != active {
		t.Error("not flushed")
	}
}

func TestReleasePicks(t *testing.T) {
	q := offerAll(testPod("a", 0), testPod("b", 0))
	for e := q.next(); e != nil; e = q.next() {
		q.failed(e, start, waiting)
	}
	q.release(start.Add(time.Hour), func(e *entry) bool { return e.pod().Name == "b" })
	if e := q.next(); e == nil || e.pod().Name != "b" || q.counts[waiting] != 1 {
		t.Errorf("released %v, %d are waiting", e, q.counts[waiting])
	}
}

// TestOwnWritesDoNotMove: the condition that the scheduler writes comes back as a change of the pod.
func TestOwnWritesDoNotMove(t *testing.T) {
	p := testPod("a", 0)
	q := offerAll(p)
	e := q.next()
	q.failed(e, start, waiting)
	compile := placement.NewCluster(nil, nil).Compile
	told := p.DeepCopy()
	told.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse}}
	if q.offer(told, compile); e.state != waiting || e.pod() != told {
		t.Errorf("state %d after a change of the status", e.state)
	}
	changed := told.DeepCopy()
	changed.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}}
	if q.offer(changed, compile); e.state != active {
		t.Errorf("state %d after a change of the spec", e.state)
	}
}

func TestEmptyQueueNeedsNoTimer(t *testing.T) {
	q := offerAll(testPod("a", 0))
	q.move(q.next(), binding)
	if _, ok := q.wakeIn(start); ok {
		t.Error("a timer is asked for although nothing rests or waits")
	}
	q.remove("uid-a")
	if len(q.entries) != 0 || q.counts != [binding + 1]int{} {
		t.Errorf("left behind: %d entries, counts %v", len(q.entries), q.counts)
	}
}
