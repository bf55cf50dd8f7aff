package session_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/actors/operator/session"
	"github.com/nodeactor/nodeactor/actors/operator/storage"
	"github.com/nodeactor/nodeactor/cluster/lease"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/test/harness"
)

const kind = "Thing"

// world is a store and the processes on it.
type world struct {
	k     *harness.Kit
	store *storage.MemoryStore
	procs []*process
	// through is the store as sessions see it, if it is not the store itself.
	through storage.Store
}

// process is one session with what it was told. It works on a manifest until finish.
type process struct {
	*session.Session
	w       *world
	name    string
	system  *supervision.System
	running map[string]lease.Fence
	// holds are the leases it was told of; lazy makes it work on none.
	holds map[string]lease.Fence
	lazy  bool
	// stubborn work does not end when it is called off.
	stubborn bool
}

func newWorld(k *harness.Kit, manifests int) *world {
	w := &world{k: k, store: storage.Memory(storage.WithClock(k.Clock()))}
	for i := range manifests {
		w.add(i)
	}
	return w
}

func (w *world) add(i int) string {
	id := storage.ID{Kind: kind, Name: fmt.Sprintf("m%04d", i)}
	if _, err := w.store.Write(w.k.Context(), storage.Write{ID: id}); err != nil {
		w.k.Fatalf("cannot add a manifest: %v", err)
	}
	return id.Key()
}

// start runs a process of its own tree.
func (w *world) start(name string) *process {
	through := w.through
	if through == nil {
		through = w.store
	}
	p := &process{Session: session.New(through, lease.SessionID{Node: name, Boot: "1"}), w: w, name: name, running: map[string]lease.Fence{}, holds: map[string]lease.Fence{}}
	p.Listen(kind, session.Listener{
		Gained: func(f lease.Fence) { p.holds[f.Manifest] = f; p.work(f.Manifest) },
		Lost:   func(f lease.Fence) { delete(p.holds, f.Manifest) },
		Cancel: func(f lease.Fence, _ lease.Reason) {
			if !p.stubborn {
				p.finish(f.Manifest)
				p.work(f.Manifest) // which is refused until it may
			}
		},
	})
	p.system = w.k.Tree(harness.Group(name, harness.OneForOne, p.Spec()))
	w.procs = append(w.procs, p)
	return p
}

// work begins work if it may.
func (p *process) work(manifest string) {
	if p.lazy {
		return
	}
	if f, ok := p.Start(manifest); ok {
		if _, beside := p.running[manifest]; beside {
			p.w.k.Fatalf("%s works twice on %s", p.name, manifest)
		}
		p.running[manifest] = f
	}
}

func (p *process) finish(manifest string) {
	f, ok := p.running[manifest]
	if !ok {
		return
	}
	delete(p.running, manifest)
	p.Done(f)
}

// idle lets all work end, and none begin until busy.
func (w *world) idle() {
	for _, p := range w.procs {
		p.lazy = true
		for _, m := range sorted(p.running) {
			p.finish(m)
		}
	}
}

// busy lets all work on what they hold.
func (w *world) busy() {
	for _, p := range w.procs {
		p.lazy = false
		for _, m := range slices.Sorted(maps.Keys(p.holds)) {
			p.work(m)
		}
	}
}

// two are processes that share the manifests evenly and work on all of them.
func (w *world) two() (a, b *process) {
	a, b = w.start("a"), w.start("b")
	w.k.Advance(time.Second)
	w.idle()
	w.k.Advance(30 * time.Second)
	w.busy()
	if len(a.running) != len(b.running) {
		w.k.Fatalf("%d and %d work", len(a.running), len(b.running))
	}
	return a, b
}

func sorted(m map[string]lease.Fence) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (w *world) held() (all []int) {
	for _, p := range w.procs {
		all = append(all, p.Stats().Held)
	}
	return all
}

// write does an effect.
func (p *process) write(f lease.Fence) error {
	id, _ := storage.ParseKey(f.Manifest)
	at, err := p.w.store.GetObject(p.w.k.Context(), id)
	if err != nil {
		return err
	}
	_, err = p.w.store.Write(p.w.k.Context(), storage.Write{Fence: &f, Expected: at.Revision, ID: id, Value: []byte(p.name)})
	return err
}

func (w *world) want(held ...int) {
	w.k.T().Helper()
	if got := w.held(); !slices.Equal(got, held) {
		w.k.Fatalf("held: %v, want %v", got, held)
	}
}

// TestF095_OneTends: of two processes one tends each manifest, and no two work on one.
func TestF095_OneTends(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		w := newWorld(k, 20)
		a, b := w.start("a"), w.start("b")
		k.Advance(5 * time.Second)
		if h := w.held(); h[0]+h[1] != 20 {
			k.Fatalf("held: %v", h)
		}
		for m := range a.running {
			if _, both := b.running[m]; both {
				k.Fatalf("both work on %s", m)
			}
		}
		if len(a.running)+len(b.running) != 20 {
			k.Fatalf("%d and %d work", len(a.running), len(b.running))
		}
		for _, m := range sorted(a.running) {
			f := a.running[m]
			if err := a.write(f); err != nil {
				k.Fatalf("the holder was refused: %v", err)
			}
			f.Holder = lease.SessionID{Node: "b", Boot: "1"}
			if err := b.write(f); err == nil {
				k.Fatalf("another one wrote")
			}
		}
	}, harness.Seeds(50))
}

// TestF096_Takeover: what a process held that is no more goes to others: within two seconds when that is known, else when its session has
// run out.
func TestF096_Takeover(t *testing.T) {
	for name, announced := range map[string]bool{"announced": true, "not announced": false} {
		t.Run(name, func(t *testing.T) {
			harness.Sim(t, func(k *harness.Kit) {
				w := newWorld(k, 20)
				a, b := w.two()
				old := maps.Clone(a.running)
				a.system.Stop(k.Context())
				limit := 16 * time.Second
				if announced {
					w.store.Announce(true, a.Stats().ID)
					limit = 2 * time.Second
				}
				k.Await(limit, func() bool { return b.Stats().Held == 20 })
				k.Settle()
				for _, m := range sorted(old) {
					if f := b.running[m]; f.Epoch != old[m].Epoch+1 {
						k.Fatalf("%s has epoch %d after %d", m, f.Epoch, old[m].Epoch)
					}
					if a.write(old[m]) == nil {
						k.Fatalf("the old holder wrote %s", m)
					}
				}
				if got := b.Stats().Takeovers; got != uint64(len(old)) {
					k.Fatalf("%d takeovers of %d", got, len(old))
				}
			}, harness.Seeds(20))
		})
	}
}

// TestF096_FalseVerdict: who was declared dead and lives goes on after all, and nothing is tended twice.
func TestF096_FalseVerdict(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		w := newWorld(k, 10)
		a, _ := w.two()
		old := maps.Clone(a.running)
		w.store.Announce(true, a.Stats().ID)
		k.Advance(1500 * time.Millisecond)
		for _, m := range sorted(old) {
			if a.write(old[m]) == nil {
				k.Fatalf("the old epoch of %s wrote", m)
			}
		}
		w.idle()
		k.Advance(time.Minute)
		if h := w.held(); h[0]+h[1] != 10 || h[0] < 3 {
			k.Fatalf("held in the end: %v", h)
		}
	}, harness.Seeds(20))
}

// TestF097_NewcomerTakesAShare: a process that comes later gets its part, and nothing is moved in which work runs.
func TestF097_NewcomerTakesAShare(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		w := newWorld(k, 30)
		a := w.start("a")
		k.Advance(5 * time.Second)
		w.want(30)
		busy := sorted(a.running)[:12]
		for _, m := range sorted(a.running)[12:] {
			a.finish(m)
		}
		w.start("b")
		k.Advance(30 * time.Second)
		w.want(15, 15)
		for _, m := range busy {
			if _, still := a.running[m]; !still {
				k.Fatalf("%s was moved while it was worked on", m)
			}
		}
		w.start("c")
		w.idle()
		k.Advance(30 * time.Second)
		w.want(10, 10, 10)
	}, harness.Seeds(20))
}

// TestF100_Leave: who leaves gives back each lease when its work has ended, ends its session, and others go on at once.
func TestF100_Leave(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		w := newWorld(k, 20)
		a, b := w.two()
		a.Leave()
		k.Await(2*time.Second, func() bool { return b.Stats().Held == 20 })
		k.Advance(time.Second)
		if st := a.Stats(); !st.Left || st.Held != 0 {
			k.Fatalf("it has not left: %+v", st)
		}
		if _, ok := a.Start(kind + "//m0000"); ok {
			k.Fatalf("it starts work after it left")
		}
		k.Advance(time.Minute)
		w.want(0, 20)
	}, harness.Seeds(20))
}

// TestF100_LeaveWithWorkThatDoesNotEnd: the wait is bounded, and what still runs is not given back but taken, under the next epoch.
func TestF100_LeaveWithWorkThatDoesNotEnd(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		w := newWorld(k, 10)
		a, b := w.two()
		a.stubborn = true
		old := maps.Clone(a.running)
		a.Leave()
		k.Advance(lease.StopWait - time.Second)
		if a.Stats().Left || b.Stats().Held+len(old) != 10 {
			k.Fatalf("it did not wait: %+v", a.Stats())
		}
		k.Await(4*time.Second, func() bool { return b.Stats().Held == 10 })
		k.Settle()
		for _, m := range sorted(old) {
			if b.running[m].Epoch != old[m].Epoch+1 || a.write(old[m]) == nil {
				k.Fatalf("%s is at epoch %d", m, b.running[m].Epoch)
			}
		}
	}, harness.Seeds(20))
}

// TestF095_RestartOfTheActor: a new generation is another boot. Work of the old one is called off and its writes are refused, and the
// leases are back at once.
func TestF095_RestartOfTheActor(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		w := newWorld(k, 10)
		a := w.start("a")
		k.Advance(5 * time.Second)
		old := maps.Clone(a.running)
		k.Expect("a/session", supervision.Panic)
		k.Inject("a/session", 1, supervision.Panic)
		k.Advance(5 * time.Second)
		w.want(10)
		for _, m := range sorted(old) {
			if a.running[m].Epoch != old[m].Epoch+1 || a.write(old[m]) == nil || a.write(a.running[m]) != nil {
				k.Fatalf("%s: %+v after %+v", m, a.running[m], old[m])
			}
		}
	}, harness.Seeds(20))
}

// TestF095_Epochs: a manifest that is deleted and made again goes on with its epochs.
func TestF095_Epochs(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		w := newWorld(k, 1)
		a := w.start("a")
		k.Advance(2 * time.Second)
		id := storage.ID{Kind: kind, Name: "m0000"}
		at, _ := w.store.GetObject(k.Context(), id)
		if _, err := w.store.Write(k.Context(), storage.Write{Expected: at.Revision, ID: id, Delete: true}); err != nil {
			k.Fatalf("cannot delete: %v", err)
		}
		k.Advance(2 * time.Second)
		w.want(0)
		w.add(0)
		k.Advance(2 * time.Second)
		if f := a.running[id.Key()]; f.Epoch != 2 {
			k.Fatalf("the epoch is %d", f.Epoch)
		}
	}, harness.Seeds(20))
}

// TestF095_StoppedProcess: a process whose clock has gone on without it starts nothing, has no more effects, and goes on by itself when
// its session is proven again, also with what nobody has taken.
func TestF095_StoppedProcess(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		w := newWorld(k, 5)
		a := w.start("a")
		k.Advance(5 * time.Second)
		f := a.running[kind+"//m0000"]
		if err := a.May(f); err != nil {
			k.Fatalf("the holder may not: %v", err)
		}
		k.Jump(24 * time.Hour) // somebody sets the wall clock: that is nothing
		if err := a.May(f); err != nil {
			k.Fatalf("the holder may not after the wall clock was set: %v", err)
		}
		stopped := k.Hold("a/session", func(any) bool { return true })
		k.Advance(20 * time.Second)
		if a.May(f) == nil {
			k.Fatalf("it may still act")
		}
		a.finish(f.Manifest)
		if _, ok := a.Start(f.Manifest); ok {
			k.Fatalf("it starts work unproven")
		}
		stopped.Release(harness.InOrder)
		k.Advance(5 * time.Second)
		w.want(5)
		if len(a.running) != 5 || a.May(a.running[f.Manifest]) != nil {
			k.Fatalf("it works on %d", len(a.running))
		}
	}, harness.Seeds(20))
}

// TestF095_MadeAgain: the epochs of a manifest go on though nobody who runs has heard of the record, and though it was folded with others.
func TestF095_MadeAgain(t *testing.T) {
	for name, others := range map[string]int{"not heard of": 0, "folded": 19_999} {
		t.Run(name, func(t *testing.T) {
			harness.Sim(t, func(k *harness.Kit) {
				w := newWorld(k, 0)
				old := lease.SessionID{Node: "old", Boot: "1"}
				for i := range others + 1 {
					r := lease.Record{}.Taken(old)
					at, _ := w.store.GetObject(k.Context(), storage.ID{Kind: kind, Name: strings.TrimPrefix(w.add(i), kind+"//")})
					taken, _ := w.store.Append(k.Context(), []lease.Write{{Manifest: at.Key(), Record: r}})
					freed, _ := w.store.Append(k.Context(), []lease.Write{{Manifest: at.Key(), Expected: taken[0].Revision, Record: r.Released()}})
					if _, err := w.store.Write(k.Context(), storage.Write{Expected: at.Revision, ID: at.ID, Delete: true}); err != nil || freed[0].Err != nil {
						k.Fatalf("cannot make what is gone: %v, %v", err, freed)
					}
				}
				a := w.start("a")
				k.Advance(2 * time.Second)
				m := w.add(0)
				k.Advance(2 * time.Second)
				if f := a.running[m]; f.Epoch != 2 || a.write(f) != nil {
					k.Fatalf("it works under %+v", f)
				}
			}, harness.Seeds(1))
		})
	}
}
