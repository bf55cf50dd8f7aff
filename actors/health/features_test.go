package health

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// logged is a log that the test reads.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// lines are those that have every part.
func (l *logged) lines(parts ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
next:
	for line := range strings.Lines(l.text.String()) {
		for _, p := range parts {
			if !strings.Contains(line, p) {
				continue next
			}
		}
		n++
	}
	return n
}

// judged is a scheduler by the product's row, or a changed one, and its judge. Messages are functions.
func judged(t *testing.T, log *logged, change func(*supervision.Spec)) (*supervision.System, *Health) {
	t.Helper()
	s, err := supervision.New(supervision.Config{Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	scheduler := catalog.Row("scheduler")
	scheduler.Start = func() supervision.Handler {
		return supervision.HandlerFunc(func(ctx supervision.Context, msg any) error {
			if f, ok := msg.(func(supervision.Context)); ok {
				f(ctx)
			}
			return nil
		})
	}
	change(&scheduler)
	root := catalog.Row("node")
	root.Children = []supervision.Spec{scheduler}
	if err := s.Start(root); err != nil {
		t.Fatal(err)
	}
	return s, New(Config{System: s, Root: "node", Store: func(context.Context) error { return nil }, Log: slog.New(slog.DiscardHandler)})
}

func judgedNode(s *supervision.System) supervision.Node { return s.Inspect().Root.Children[0] }

// TestF042_APanicIsFatalByPolicyOnly: a child with state comes back by its own policy and its last death is kept; by a policy that leaves it
// dead it stays dead, and /livez names it, until it is restarted by hand.
func TestF042_APanicIsFatalByPolicyOnly(t *testing.T) {
	boom := func(supervision.Context) { panic("boom") }
	t.Run("the product's policy", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, h := judged(t, &logged{}, func(*supervision.Spec) {})
			defer s.Stop(context.Background())
			s.Send(s.Ref("node/scheduler"), boom)
			synctest.Wait()
			want(t, h, "/livez", http.StatusInternalServerError, "[-]scheduler failed")
			time.Sleep(10 * time.Second)
			want(t, h, "/livez", http.StatusOK, "ok")
			if n := judgedNode(s); n.Generation != 2 || n.LastFault == nil || n.LastFault.Kind != supervision.Panic || n.LastFault.Generation != 1 {
				t.Errorf("it came back as %+v", n)
			}
		})
	})
	t.Run("one that leaves it dead", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			log := &logged{}
			s, h := judged(t, log, func(spec *supervision.Spec) { spec.Policy[core.Panic] = core.Reaction{Do: core.DoStop} })
			defer s.Stop(context.Background())
			s.Send(s.Ref("node/scheduler"), boom)
			time.Sleep(24 * time.Hour)
			for _, path := range []string{"/livez", "/healthz"} {
				want(t, h, path, http.StatusInternalServerError, "[-]scheduler failed: reason withheld", path[1:]+" check failed")
			}
			n := judgedNode(s)
			if n.State != core.Dead || n.Generation != 1 || n.LastFault == nil || !strings.Contains(n.LastFault.Err.Error(), "boom") {
				t.Errorf("it is %+v", n)
			}
			if log.lines("level=ERROR", "node/scheduler", "stays down by its policy") != 1 {
				t.Errorf("the log says:\n%s", log.text.String())
			}
			if err := s.Restart("node/scheduler"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			want(t, h, "/livez", http.StatusOK, "ok")
			if n := judgedNode(s); n.Generation != 2 || n.LastFault == nil {
				t.Errorf("after a restart by hand it is %+v", n)
			}
		})
	})
}

// TestF043_AHangIsToldAbandonedFencedAndReplaced follows a child that does not come back from a message.
func TestF043_AHangIsToldAbandonedFencedAndReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &logged{}
		s, h := judged(t, log, func(*supervision.Spec) {})
		defer s.Stop(context.Background())
		release, fenced, second := make(chan bool), make(chan error, 1), make(chan uint64, 1)
		s.Send(s.Ref("node/scheduler"), func(ctx supervision.Context) {
			<-release
			fenced <- ctx.Fence().Check()
		})
		s.Send(s.Ref("node/scheduler"), func(ctx supervision.Context) { second <- ctx.Generation() })
		time.Sleep(stalledAfter + time.Second)
		synctest.Wait()
		want(t, h, "/livez", http.StatusInternalServerError, "[-]scheduler failed")
		if n := judgedNode(s); n.Generation != 1 || len(second) != 0 {
			t.Errorf("while it hangs it works on: %+v, %d", n, len(second))
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		want(t, h, "/livez", http.StatusOK, "ok")
		n := judgedNode(s)
		if n.State != core.Running || n.Generation != 2 || n.LastFault == nil || n.LastFault.Kind != supervision.Hang || s.Abandoned() != 1 {
			t.Errorf("it is %+v, %d abandoned", n, s.Abandoned())
		}
		if log.lines("level=ERROR", "kind=Hang", "node/scheduler") != 1 || log.lines("child abandoned", "node/scheduler") != 1 {
			t.Errorf("the log says:\n%s", log.text.String())
		}
		close(release)
		if err := <-fenced; !errors.Is(err, supervision.ErrFenced) {
			t.Errorf("what was left behind may still act: %v", err)
		}
		synctest.Wait()
		if len(second) == 1 && <-second != 2 {
			t.Error("the next message was worked on by the generation that hung")
		}
	})
}

// TestF055_AStoreThatHangsFailsReadiness within two seconds.
func TestF055_AStoreThatHangsFailsReadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := judged(t, &logged{}, func(*supervision.Spec) {})
		defer s.Stop(context.Background())
		h.Store = func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		began := time.Now()
		want(t, h, "/readyz", http.StatusInternalServerError, "[-]store failed: reason withheld", "[+]scheduler ok")
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("it took %v", took)
		}
		want(t, h, "/livez", http.StatusOK, "ok")
	})
}
