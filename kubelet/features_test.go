package kubelet

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

// renewals takes those of the node's Lease.
type renewals struct {
	mu  sync.Mutex
	all []time.Time
}

func (r *renewals) Renewed(_ context.Context, _ string, at time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, at)
	return nil
}

func (r *renewals) last() (at time.Time, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[len(r.all)-1], len(r.all)
}

// TestF060_ASilentRuntimeMakesTheNodeNotReady: the last good relist ages. From 180 s on the node says so itself and its Lease is not renewed, so
// that 40 s later nobody believes in it; both come back with the next good one.
func TestF060_ASilentRuntimeMakesTheNodeNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := &renewals{}
		s := testShared(t, fake.NewClientset())
		s.Heartbeat = heard
		s.network.Store(nil)
		status := &nodeStatusChild{shared: s, pressure: map[v1.NodeConditionType]time.Time{}}
		began := time.Now()
		s.health.good(began)
		system, err := supervision.New(supervision.Config{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		root, lease := catalog.Row("node"), catalog.Row("node-lease")
		lease.Start = func() supervision.Handler { return &nodeLeaseChild{shared: s} }
		root.Children = []supervision.Spec{lease}
		if err := system.Start(root); err != nil {
			t.Fatal(err)
		}
		defer system.Stop(context.Background())
		at := func(after time.Duration, ready v1.ConditionStatus, renewed time.Duration, times int) {
			t.Helper()
			time.Sleep(time.Until(began.Add(after)))
			synctest.Wait()
			if got := readyIn(status.conditions(time.Now())); got != ready {
				t.Errorf("after %v Ready is %s", after, got)
			}
			if last, n := heard.last(); last.Sub(began) != renewed || n != times {
				t.Errorf("after %v the Lease was renewed %d times, the last time after %v", after, n, last.Sub(began))
			}
		}
		at(35*time.Second, v1.ConditionTrue, 30*time.Second, 4)
		at(180*time.Second, v1.ConditionTrue, 180*time.Second, 19)
		at(181*time.Second, v1.ConditionFalse, 180*time.Second, 19)
		at(180*time.Second+leaseSeconds*time.Second, v1.ConditionFalse, 180*time.Second, 19)
		s.health.good(time.Now())
		at(222*time.Second, v1.ConditionTrue, 221*time.Second, 20)
	})
}

func readyIn(conditions []v1.NodeCondition) v1.ConditionStatus {
	for _, c := range conditions {
		if c.Type == v1.NodeReady {
			return c.Status
		}
	}
	return ""
}

// TestF063_BackOffIsThatOfThePodsUID: a pod that backs off is replaced by one of the same name, which runs at once.
func TestF063_BackOffIsThatOfThePodsUID(t *testing.T) {
	h := newHost(t, nil)
	h.create(shell("crash", "exit 3"))
	backsOff := func(p *v1.Pod) bool {
		s := status(p, "main")
		return s != nil && s.State.Waiting != nil && s.State.Waiting.Reason == "CrashLoopBackOff"
	}
	h.wait("crash", "in CrashLoopBackOff", backsOff)
	h.remove("crash", 0)
	again := shell("crash", "exec sleep 1000")
	again.UID = "another-uid"
	h.create(again)
	p := h.wait("crash", "running or backing off", func(p *v1.Pod) bool {
		s := status(p, "main")
		return backsOff(p) || s != nil && s.State.Running != nil
	})
	if s := status(p, "main"); s.State.Running == nil || s.RestartCount != 0 || p.UID != "another-uid" {
		t.Errorf("the new pod is %+v", s)
	}
	h.remove("crash", 0)
}
