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

// TestBrokenSupervisor holds that a defect of a supervisor itself is a fault like any other:
// its children are fenced and stopped, and its own supervisor builds it anew.
func TestBrokenSupervisor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Config{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		var fences []Fence
		stops := 0
		child := testSpec("child", core.Worker)
		child.Start = func() Handler {
			return HandlerFunc(func(ctx Context, msg any) error {
				switch msg.(type) {
				case Started:
					fences = append(fences, ctx.Fence())
				case Stopping:
					stops++
				}
				return nil
			})
		}
		group := testSpec("group", core.Supervisor)
		group.Children = []Spec{child}
		root := testSpec("root", core.Supervisor)
		root.Children = []Spec{group}
		if err := s.Start(root); err != nil {
			t.Fatal(err)
		}
		sup := s.reg.find("root/group").supervisor()
		sup.mu.Lock()
		sup.group = nil
		sup.mu.Unlock()
		sup.self.postControl(groupEvent{})
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(fences) != 2 || stops != 1 || fences[0].Check() == nil || fences[1].Check() != nil {
			t.Errorf("%d generations of the child, %d stops, fences %v", len(fences), stops, fences)
		}
		if f := s.Faults().Recent(); len(f) == 0 || f[0].Kind != Panic || f[0].Path != "root/group" {
			t.Errorf("faults %v", f)
		}
		s.Stop(t.Context())
		if stops != 2 {
			t.Errorf("%d stops after the end", stops)
		}
	})
}

func TestQueueIsARing(t *testing.T) {
	var q queue
	next, want := 0, 0
	for round := range 1000 {
		for range round % 7 {
			q.push(next)
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
