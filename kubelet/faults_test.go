package kubelet

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/nodeactor/nodeactor/supervision"
)

// TestFaultsOfChildrenLeavePodsAlone ends every child of the kubelet by each kind of fault that a message can raise, and
// the groups by a restart: no container is restarted, no pod loses its readiness, and the kubelet goes on working.
func TestFaultsOfChildrenLeavePodsAlone(t *testing.T) {
	h := newHost(t, nil)
	h.create(shell("steady", "exec sleep 1000"))
	before := h.running("steady")
	id := status(before, "main").ContainerID
	unready := make(chan *v1.Pod, 1)
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
			if p := h.get("steady"); p != nil && !isReady(p) {
				select {
				case unready <- p:
				default:
				}
			}
		}
	}()
	for _, child := range []string{"node/kubelet/pods/steady-uid", "node/kubelet/relist", "node/kubelet/sync", "node/kubelet/images", "node/kubelet/network",
		"node/kubelet/node-status", "node/kubelet/node-lease"} {
		for _, kind := range []supervision.FaultKind{supervision.Panic, supervision.ErrorReturn} {
			h.fault(child, kind)
		}
	}
	for _, group := range []string{"node/kubelet/pods", "node/kubelet"} {
		if err := h.sys.Restart(group); err != nil {
			t.Errorf("%s: %v", group, err)
		}
		time.Sleep(3 * time.Second)
	}
	h.create(shell("after", "exec sleep 1000"))
	h.running("after")
	if s := status(h.get("steady"), "main"); s.ContainerID != id || s.RestartCount != 0 {
		t.Errorf("%+v", s)
	}
	close(stop)
	select {
	case p := <-unready:
		t.Errorf("it was not ready for a while: %+v", p.Status.Conditions)
	default:
	}
	h.remove("steady", 0)
	h.remove("after", 0)
	if n := h.sys.Abandoned(); n > 0 {
		t.Errorf("%d children were abandoned", n)
	}
}

// fault makes the child end by kind. One that is in back-off from the fault before is waited for.
func (h *host) fault(child string, kind supervision.FaultKind) {
	h.t.Helper()
	key := supervision.FaultKey{Path: child, Kind: kind}
	before := h.sys.Faults().Counts()[key]
	h.eventually(child+" faulted", func() bool {
		if h.sys.Faults().Counts()[key] > before {
			return true
		}
		if h.sys.Inject(child, kind) == nil {
			h.sys.Send(h.sys.Ref(child), struct{}{})
		}
		return false
	})
}

func (h *host) eventually(what string, ok func() bool) {
	h.t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatalf("never: %s", what)
		}
	}
}
