package supervision

import (
	"bytes"
	"compress/gzip"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeactor/nodeactor/supervision/core"
)

func testSpec(id string, kind core.Kind) Spec {
	r := core.Reaction{Do: core.DoRestart, Backoff: core.Backoff{Initial: time.Second, Factor: 2, Cap: time.Minute, Reset: time.Minute}}
	return Spec{ChildSpec: core.ChildSpec{
		ID: id, Row: id, Kind: kind, Restart: core.Permanent, StartTimeout: time.Minute, HangAfter: time.Minute, StopTimeout: time.Hour,
		Mailbox: core.Mailbox{Limit: 10, Overflow: core.RejectNewest}, Policy: [core.NumFaultKinds]core.Reaction{r, r, r, r},
		Group: core.GroupSpec{Strategy: core.OneForOne, Intensity: core.Intensity{Max: 3, Within: time.Minute}, Sustained: core.Intensity{Max: 1000, Within: 24 * time.Hour}, MaxAbandoned: 3},
	}}
}

// TestBrokenSupervisor holds that a defect of a supervisor itself, of a group or of a pool, is a
// fault like any other: its children are fenced and stopped, which is told, and its own
// supervisor builds it anew.
func TestBrokenSupervisor(t *testing.T) {
	for _, strategy := range []core.Strategy{core.OneForOne, core.Pool} {
		synctest.Test(t, func(t *testing.T) { brokenSupervisor(t, strategy) })
	}
}

func brokenSupervisor(t *testing.T, strategy core.Strategy) {
	s, err := New(Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	var lives []Fence
	var stops, refused int
	release := make(chan struct{})
	child := testSpec("child", core.Worker)
	child.Start = func() Handler {
		return HandlerFunc(func(ctx Context, msg any) error {
			switch msg.(type) {
			case Started:
				lives = append(lives, ctx.Fence())
			case Stopping:
				if <-release; ctx.Fence().Check() != nil {
					refused++
				}
				stops++
			}
			return nil
		})
	}
	group, root := testSpec("group", core.Supervisor), testSpec("root", core.Supervisor)
	if group.Group.Strategy = strategy; strategy == core.Pool {
		group.Template = &child
	} else {
		group.Children = []Spec{child}
	}
	root.Children = []Spec{group}
	last := map[string]State{}
	s.Watch(func(c Change) {
		if last[c.Path] != c.From {
			t.Errorf("%s goes on from %v, it was %v", c.Path, c.From, last[c.Path])
		}
		last[c.Path] = c.To
	})
	if err := s.Start(root); err != nil {
		t.Fatal(err)
	}
	s.Pool("root/group").Ensure("child", child.Start)
	synctest.Wait()
	s.reg.find("root/group").cell.Load().postControl(injection{Panic})
	time.Sleep(time.Minute)
	s.Pool("root/group").Ensure("child", child.Start)
	synctest.Wait()
	if len(lives) != 2 || lives[0].Check() == nil {
		t.Errorf("%v: %d generations, the first still stops with its fence open", strategy, len(lives))
	}
	close(release)
	synctest.Wait()
	if len(lives) != 2 || stops != 1 || refused != 1 || lives[1].Check() != nil {
		t.Errorf("%v: %d generations of the child, %d stops, %d of them fenced", strategy, len(lives), stops, refused)
	}
	if f := s.Faults().Recent(); len(f) == 0 || f[0].Kind != Panic || f[0].Path != "root/group" {
		t.Errorf("%v: faults %v", strategy, f)
	}
	s.Stop(t.Context())
	synctest.Wait()
	if stops != 2 || last["root/group/child"] != core.Idle {
		t.Errorf("%v: %d stops after the end, the child is %v", strategy, stops, last["root/group/child"])
	}
}

// TestBrokenBranchIsGoneInTheEnd holds that of everything below a broken supervisor, groups and
// pools within groups, nothing stays once its children have stopped.
func TestBrokenBranchIsGoneInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Config{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		child, pool := testSpec("child", core.Worker), testSpec("pool", core.Supervisor)
		child.Start = func() Handler { return HandlerFunc(func(Context, any) error { return nil }) }
		pool.Group.Strategy, pool.Template = core.Pool, &child
		inner, outer, root := testSpec("inner", core.Supervisor), testSpec("outer", core.Supervisor), testSpec("root", core.Supervisor)
		inner.Children = []Spec{child, pool}
		outer.Children = []Spec{inner}
		root.Children = []Spec{outer}
		if err := s.Start(root); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			s.Pool("root/outer/inner/pool").Ensure("m", child.Start)
			synctest.Wait()
			s.reg.find("root/outer").cell.Load().postControl(injection{Panic})
			time.Sleep(time.Minute)
			synctest.Wait()
			if len(s.left) > 0 || len(s.cells) != 5 {
				t.Errorf("%d generations run, and %v were left behind", len(s.cells), s.left)
			}
		}
		s.Stop(t.Context())
		if len(s.cells) > 0 {
			t.Errorf("%d generations run after the stop", len(s.cells))
		}
	})
}

// TestDisownedPoolStopsNobody holds that the late stop of a generation of a pool leaves the
// members of its successor alone.
func TestDisownedPoolStopsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := crowd(t, 3)
		old := s.reg.find("root/pool").cell.Load()
		old.postControl(injection{Panic})
		time.Sleep(time.Minute)
		s.Pool("root/pool").Ensure("new", func() Handler { return HandlerFunc(func(Context, any) error { return nil }) })
		synctest.Wait()
		if err := s.reg.pool("root/pool").Receive(old, Stopping{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n, ok := s.Look("root/pool/new"); !ok || n.State != core.Running {
			t.Errorf("the member of the new pool is %v", n.State)
		}
		s.Stop(t.Context())
	})
}

// TestOnlyWhatRunsIsLeftBehind holds that a child which has exited already is no zombie.
func TestOnlyWhatRunsIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Config{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		child, root := testSpec("child", core.Worker), testSpec("root", core.Supervisor)
		child.Start = func() Handler { return HandlerFunc(func(Context, any) error { return nil }) }
		root.Children = []Spec{child}
		if err := s.Start(root); err != nil {
			t.Fatal(err)
		}
		c := s.reg.find("root/child").cell.Load()
		s.Stop(t.Context())
		c.disown()
		s.leaveBehind(c, nil)
		if len(s.left) > 0 {
			t.Errorf("left behind: %v", s.left)
		}
	})
}

func TestQueueIsARing(t *testing.T) {
	var q queue
	next, want := 0, 0
	for round := range 1000 {
		for range round % 7 {
			q.push(next, int64(next))
			next++
		}
		for range min(round%5, q.n) {
			if got := q.pop(); got != want {
				t.Fatalf("popped %v, want %d", got, want)
			}
			want++
		}
	}
	for _, got := range q.drain() {
		if got != want {
			t.Fatalf("drained %v, want %d", got, want)
		}
		want++
	}
	if want != next || q.n != 0 || q.ring != nil {
		t.Errorf("%d of %d came out, %d are left", want, next, q.n)
	}
}

// FuzzProfile holds that no profile, however broken, does harm.
func FuzzProfile(f *testing.F) {
	sample := []byte{0x12, 0x0a, 0x12, 0x02, 0x01, 0x0a, 0x1a, 0x04, 0x08, 0x01, 0x10, 0x02}
	texts := []byte{0x32, 0x00, 0x32, 0x05, 'a', 'c', 't', 'o', 'r', 0x32, 0x01, 'x'}
	f.Add(append(sample, texts...))
	f.Add([]byte{0x12, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Add([]byte{0x0d, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		var zipped bytes.Buffer
		w := gzip.NewWriter(&zipped)
		w.Write(raw)
		w.Close()
		shares, err := sharesByActor(&zipped, 10)
		if bytes.Equal(raw, append(sample, texts...)) && (err != nil || shares["x"] != 1) {
			t.Errorf("shares %v, %v", shares, err)
		}
	})
}
