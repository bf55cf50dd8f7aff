package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nodeactor/nodeactor/store/engine"
)

// journal is an engine's history in memory.
type journal struct {
	mu        sync.Mutex
	changes   []engine.Change
	last      map[string]engine.KV
	rev       int64
	compacted int64
	reads     int
}

func newJournal() *journal { return &journal{rev: 1, last: map[string]engine.KV{}} }

// write makes one change of each key at one revision: its value is the revision, or it is deleted when it was there and del says so.
func (j *journal) write(del bool, keys ...string) engine.Batch {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.rev++
	b := engine.Batch{Revision: j.rev}
	for _, key := range keys {
		c := engine.Change{KV: engine.KV{Key: key, ModRevision: j.rev, Value: []byte(fmt.Sprint(j.rev))}}
		if prev, ok := j.last[key]; ok {
			c.Prev, c.Delete = &prev, del
		}
		delete(j.last, key)
		if !c.Delete {
			j.last[key] = c.KV
		}
		b.Changes = append(b.Changes, c)
	}
	j.changes = append(j.changes, b.Changes...)
	return b
}

func (j *journal) History(_ context.Context, from, to string, after, upto int64, limit int) ([]engine.Change, int64, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.reads++
	if after < j.compacted {
		return nil, after, engine.ErrCompacted
	}
	var out []engine.Change
	for _, c := range j.changes {
		switch rev := c.KV.ModRevision; {
		case rev <= after || c.KV.Key < from || c.KV.Key >= to:
		case rev > upto:
			return out, upto, nil
		case len(out) >= limit && rev != out[len(out)-1].KV.ModRevision:
			return out, out[len(out)-1].KV.ModRevision, nil
		default:
			out = append(out, c)
		}
	}
	return out, upto, nil
}

func describe(c engine.Change) string {
	prev := ""
	if c.Prev != nil {
		prev = string(c.Prev.Value)
	}
	return fmt.Sprintf("%d %s %v %s", c.KV.ModRevision, c.KV.Key, c.Delete, prev)
}

func describeEvent(e Event) string {
	prev := ""
	if e.Prev != nil {
		prev = string(e.Prev.Value)
	}
	return fmt.Sprintf("%d %s %v %s", e.Revision, e.Item.Key, e.Type == Deleted, prev)
}

// TestStreamsHaveNoGaps: however subscribers are spread over time and resources, and however slowly they read, each sees exactly the
// changes behind its start, in order, although the rings are tiny.
func TestStreamsHaveNoGaps(t *testing.T) {
	prefixes := [][]string{nil, {"/registry/a/"}, {"/registry/b/x"}, {"/registry/a/", "/registry/g.io/r/"}, {"/registry/none/"}}
	keys := []string{"/registry/a/1", "/registry/a/2", "/registry/b/x/1", "/registry/b/y/1", "/registry/g.io/r/1", "/registry/g.io/s/1", "/other"}
	rapid.Check(t, func(t *rapid.T) {
		j := newJournal()
		x := New(j)
		x.limit = rapid.IntRange(1, 6).Draw(t, "ring")
		for range rapid.IntRange(0, 20).Draw(t, "before load") {
			j.write(rapid.Bool().Draw(t, "del"), rapid.SampledFrom(keys).Draw(t, "key"))
		}
		var state []engine.KV
		for _, kv := range j.last {
			if DirOf(kv.Key) != "" {
				state = append(state, kv)
			}
		}
		x.Load(state, j.rev)
		type reader struct {
			sub      *Subscription
			prefixes []string
			got      []string
		}
		var readers []*reader
		read := func(r *reader) bool {
			events, err := r.sub.Poll(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events {
				r.got = append(r.got, describeEvent(e))
			}
			return len(events) > 0
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				p := rapid.SampledFrom(prefixes).Draw(t, "prefixes")
				after := rapid.Int64Range(1, j.rev+2).Draw(t, "after")
				readers = append(readers, &reader{sub: x.Subscribe(SubscribeOptions{Prefixes: p, After: after}), prefixes: p})
			case 1:
				if len(readers) > 0 {
					read(rapid.SampledFrom(readers).Draw(t, "reader"))
				}
			default:
				n := rapid.IntRange(1, 2).Draw(t, "n")
				at := rapid.IntRange(0, len(keys)-n).Draw(t, "at")
				x.Apply(j.write(rapid.Bool().Draw(t, "del"), keys[at:at+n]...))
			}
		}
		for _, r := range readers {
			for read(r) {
			}
			var want []string
			for _, c := range j.changes {
				if c.KV.ModRevision > r.sub.After() && DirOf(c.KV.Key) != "" && r.sub.matches(c.KV.Key) {
					want = append(want, describe(c))
				}
			}
			// Changes of one revision may come in any order.
			if !slices.IsSortedFunc(r.got, byRevision) {
				t.Fatalf("out of order: %v", r.got)
			}
			slices.Sort(r.got)
			slices.Sort(want)
			if fmt.Sprint(r.got) != fmt.Sprint(want) {
				t.Fatalf("%v after %d: got %v, want %v", r.prefixes, r.sub.After(), r.got, want)
			}
			if rev := r.sub.Revision(); rev < x.rev {
				t.Fatalf("everything is read, but revision is %d of %d", rev, x.rev)
			}
		}
		items, rev := x.List(Root)
		if rev != j.rev || len(items) != len(x.all(j)) {
			t.Fatalf("%d items at %d, want %d at %d", len(items), rev, len(x.all(j)), j.rev)
		}
	})
}

func byRevision(a, b string) int {
	var ra, rb int
	_, _ = fmt.Sscan(a, &ra)
	_, _ = fmt.Sscan(b, &rb)
	return cmp.Compare(ra, rb)
}

func (x *Index) all(j *journal) (keys []string) {
	for key := range j.last {
		if DirOf(key) != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

func TestSnapshotsNeverChange(t *testing.T) {
	j := newJournal()
	x := New(j)
	x.Load(nil, 1)
	x.Apply(j.write(false, "/registry/a/1", "/registry/a/2"))
	before := x.Snapshot("/registry/a/")
	x.Apply(j.write(false, "/registry/a/1", "/registry/a/3"))
	x.Apply(j.write(true, "/registry/a/2"))
	if before.Len() != 2 || before.Count("/registry/a/", "/registry/a/2") != 1 || before.Revision != 2 || before.Last != 2 {
		t.Fatalf("changed: %+v", before)
	}
	if i, ok := before.Get("/registry/a/1"); !ok || string(i.Value) != "2" {
		t.Fatalf("got %v", i)
	}
	if now := x.Snapshot("/registry/a/"); now.Len() != 2 || now.Last != 4 {
		t.Fatalf("got %+v", now)
	}
	if n := x.Size("/registry/a/"); n != (Size{2, 2}) {
		t.Fatalf("size %+v", n)
	}
}

func TestParkedFormsAreThereBeforeAnybodyLooks(t *testing.T) {
	j := newJournal()
	x := New(j)
	x.Load(nil, 1)
	mine := x.Park("/registry/a/1", []byte("2"), func(i *Item) { i.Forms().Set("owner", i.ModRevision) })
	other := x.Park("/registry/a/1", []byte("something else"), func(*Item) { t.Error("claimed the wrong one") })
	x.Apply(j.write(false, "/registry/a/1"))
	x.Unpark("/registry/a/1", other)
	x.Unpark("/registry/a/1", mine)
	item, _ := x.Get("/registry/a/1")
	if item != mine.Item() || item.Forms().Get("owner") != int64(2) || item.Forms().Set("owner", 9) != int64(2) {
		t.Fatalf("got %v", item.Forms().Get("owner"))
	}
	if len(x.parked) != 0 {
		t.Fatalf("left behind: %v", x.parked)
	}
}

func TestWaits(t *testing.T) {
	j := newJournal()
	x := New(j)
	x.Load(nil, 1)
	done := make(chan error, 1)
	go func() { done <- x.Wait(context.Background(), 3) }()
	x.Apply(j.write(false, "/registry/a/1"))
	select {
	case err := <-done:
		t.Fatalf("ended early: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	x.Apply(engine.Batch{Revision: 3})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := x.Wait(ctx, 9); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	go func() { done <- x.Wait(context.Background(), 9) }()
	time.Sleep(10 * time.Millisecond)
	x.Close(ErrClosed)
	if err := <-done; !errors.Is(err, ErrClosed) {
		t.Fatalf("got %v", err)
	}
}

func TestTooOldAndTooSlow(t *testing.T) {
	ctx := context.Background()
	j := newJournal()
	x := New(j)
	x.limit = 2
	x.Load(nil, 1)
	slow := x.Subscribe(SubscribeOptions{Prefixes: []string{"/registry/a/"}})
	x.Apply(j.write(false, "/registry/a/1"))
	if events, err := slow.Next(ctx); err != nil || len(events) != 1 {
		t.Fatalf("got %v, %v", events, err)
	}
	for range 5 {
		x.Apply(j.write(false, "/registry/a/1"))
	}
	j.compacted = j.rev
	x.Forget(j.rev)
	if _, err := slow.Next(ctx); !errors.Is(err, ErrOverflow) {
		t.Fatalf("got %v", err)
	}
	if _, err := x.Subscribe(SubscribeOptions{After: 2}).Next(ctx); !errors.Is(err, ErrCompacted) {
		t.Fatalf("got %v", err)
	}
	slow.Close()
	slow.Close()
	if _, err := slow.Next(ctx); !errors.Is(err, ErrClosed) {
		t.Fatalf("got %v", err)
	}
}

func TestDirOf(t *testing.T) {
	for key, want := range map[string]string{
		"/registry/pods/ns/name":            "/registry/pods/",
		"/registry/pods":                    "/registry/pods/",
		"/registry/services/specs/ns/a":     "/registry/services/specs/",
		"/registry/services/endpoints/ns/a": "/registry/services/endpoints/",
		"/registry/g.io/widgets/ns/a":       "/registry/g.io/widgets/",
		"/registry/g.io/widgets":            "/registry/g.io/widgets/",
		"/other/x":                          "",
	} {
		if got := DirOf(key); got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
}

// TestConcurrentReaders is for the race detector.
func TestConcurrentReaders(t *testing.T) {
	j := newJournal()
	x := New(j)
	x.limit = 16
	x.Load(nil, 1)
	const writes = 2000
	var wg sync.WaitGroup
	for r := range 6 {
		sub := x.Subscribe(SubscribeOptions{Prefixes: []string{"/registry/a/"}, After: 1})
		wg.Go(func() {
			defer sub.Close()
			for seen := 0; seen < writes; {
				events, err := sub.Next(context.Background())
				if err != nil {
					t.Error(err)
					return
				}
				seen += len(events)
				x.Snapshot("/registry/a/").Ascend("/registry/a/", "", func(*Item) bool { return true })
				_, _ = x.Get(fmt.Sprintf("/registry/a/%d", r))
			}
		})
	}
	for i := range writes {
		x.Apply(j.write(false, fmt.Sprintf("/registry/a/%d", i%50)))
	}
	wg.Wait()
}

// TestBatchesOfLargeObjectsAreSmall: what a subscriber that stands still may hold does not grow with the objects, from the ring or from history.
func TestBatchesOfLargeObjectsAreSmall(t *testing.T) {
	const size, n = 300 << 10, 20
	j := newJournal()
	x := New(j)
	x.limit = n / 2
	x.Load(nil, j.rev)
	fromRing, fromHistory := x.Subscribe(SubscribeOptions{After: 1}), x.Subscribe(SubscribeOptions{After: 1})
	defer fromRing.Close()
	defer fromHistory.Close()
	for i := range n {
		b := j.write(false, fmt.Sprintf("/registry/a/%d", i))
		b.Changes[0].KV.Value = make([]byte, size)
		x.Apply(b)
		if i == n/2-1 {
			events, err := fromRing.Poll(context.Background())
			if err != nil || len(events) != batchBytes/size+1 {
				t.Errorf("%d events of %d bytes in a batch: %v", len(events), size, err)
			}
		}
	}
	events, err := fromHistory.Poll(context.Background())
	if err != nil || len(events) != minHistoryEvents {
		t.Errorf("%d events of %d bytes from history at once: %v", len(events), size, err)
	}
}
