package serve

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

func TestRecoverCountsAndAnswers(t *testing.T) {
	before := supervision.Panics()
	var got supervision.Fault
	h := Recover("api", func(f supervision.Fault) { got = f }, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("boom") }))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "boom") {
		t.Errorf("the answer is %d %q", w.Code, w.Body)
	}
	if got.Kind != supervision.Panic || got.Path != "api" || !strings.Contains(string(got.Stack), "TestRecoverCountsAndAnswers") {
		t.Errorf("the fault is %+v", got)
	}
	if n := supervision.Panics() - before; n != 1 {
		t.Errorf("%d panics are counted", n)
	}
}

func TestRecoverLetsAbortPass(t *testing.T) {
	before := supervision.Panics()
	h := Recover("api", nil, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer func() {
		if v := recover(); v != http.ErrAbortHandler || supervision.Panics() != before {
			t.Errorf("recovered %v, %d panics", v, supervision.Panics()-before)
		}
	}()
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
}

// port is the spec of a listener under test.
func port(cfg Config) supervision.Spec {
	r := core.Reaction{Do: core.DoRestart, Backoff: core.Backoff{Initial: 10 * time.Millisecond, Factor: 1, Cap: 10 * time.Millisecond, Reset: time.Minute}}
	child := core.ChildSpec{
		ID: "port", Row: "port", Kind: core.Worker, Restart: core.Permanent,
		StartTimeout: time.Second, HangAfter: time.Second, StopTimeout: 200 * time.Millisecond,
		Mailbox: core.Mailbox{Limit: 10, Overflow: core.RejectNewest}, Policy: [core.NumFaultKinds]core.Reaction{r, r, r, r},
	}
	root := child
	root.ID, root.Kind = "root", core.Supervisor
	root.Group = core.GroupSpec{Strategy: core.OneForOne, Intensity: core.Intensity{Max: 100, Within: time.Minute}, Sustained: core.Intensity{Max: 1000, Within: 24 * time.Hour}, MaxAbandoned: 3}
	return supervision.Spec{ChildSpec: root, Children: []supervision.Spec{{ChildSpec: child, Start: func() supervision.Handler { return New(cfg) }}}}
}

func run(t *testing.T, cfg Config) *supervision.System {
	t.Helper()
	s, err := supervision.New(supervision.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(port(cfg)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop(context.Background()) })
	return s
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

func serveUntil(ctx context.Context, l net.Listener) error {
	<-ctx.Done()
	return l.Close()
}

// TestDeafListenerHangs holds that a listener which does not answer its own requests is a
// hang, and is replaced.
func TestDeafListenerHangs(t *testing.T) {
	var deaf atomic.Bool
	s := run(t, Config{
		Network: "tcp", Addr: "127.0.0.1:0", Serve: serveUntil, ProbeEvery: 10 * time.Millisecond, ProbeWithin: 100 * time.Millisecond,
		Probe: func(context.Context, net.Addr) error {
			if deaf.Load() {
				return errors.New("no answer")
			}
			return nil
		},
	})
	time.Sleep(300 * time.Millisecond)
	if f := s.Faults().Recent(); len(f) > 0 {
		t.Fatalf("a listener that answers has faults: %v", f)
	}
	deaf.Store(true)
	await(t, "the deaf listener is a hang", func() bool {
		return s.Faults().Counts()[supervision.FaultKey{Path: "root/port", Kind: core.Hang}] > 0
	})
	deaf.Store(false)
	await(t, "it is replaced", func() bool {
		n := s.Inspect().Root.Children[0]
		return n.State == core.Running && n.Generation > 1
	})
}

// TestEndOfAServerIsAFault holds that a server which returns by itself is started again.
func TestEndOfAServerIsAFault(t *testing.T) {
	var lives atomic.Int32
	s := run(t, Config{Network: "tcp", Addr: "127.0.0.1:0", Serve: func(ctx context.Context, l net.Listener) error {
		if lives.Add(1) == 1 {
			return l.Close()
		}
		return serveUntil(ctx, l)
	}})
	await(t, "the server lives again", func() bool { return lives.Load() == 2 })
	if f := s.Faults().Recent(); len(f) != 1 || f[0].Kind != core.ErrorReturn {
		t.Errorf("faults %v", f)
	}
}
