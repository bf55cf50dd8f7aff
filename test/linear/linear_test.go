package linear

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	// defaultSeconds is what the test command runs.
	defaultSeconds = 12
	// writers is how many clients act on the objects, holders on each lease.
	writers, holders = 5, 3
	// keys is how many objects there are at a time, keysLast for how many seconds: the search for an order grows with what is open.
	keys, keysLast = 2, 3
	// passFor is the time to live of keys that have one, in seconds.
	passFor = 3
	// keepBehind is how many revisions of history are kept.
	keepBehind = 400
)

// TestP22_Linearizable: three members under crashes, pauses and partitions are one store to their clients: what clients were told about single
// objects, about leases and what was written under them, and about keys that end by themselves has an order in which it is all true.
func TestP22_Linearizable(t *testing.T) {
	seconds, seed := setting(t, "LINEAR_SECONDS", defaultSeconds), setting(t, "LINEAR_SEED", time.Now().UnixNano())
	t.Logf("LINEAR_SECONDS=%d LINEAR_SEED=%d", seconds, seed)
	f := newFleet(t)
	run := newRun(f, uint64(seed))
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(seconds)*time.Second)
	defer cancel()
	for i := range writers {
		run.go_(func(rnd *rand.Rand) { run.write(ctx, i, rnd) })
	}
	for i := range 2 * holders {
		run.go_(func(rnd *rand.Rand) { run.hold(ctx, i, rnd) })
	}
	run.go_(func(rnd *rand.Rand) { run.passKeys(ctx, rnd) })
	for range 2 {
		run.go_(func(rnd *rand.Rand) { run.watch(ctx, rnd) })
	}
	run.go_(func(rnd *rand.Rand) { run.forget(ctx, rnd) })
	faults := f.disturb(ctx, rand.New(rand.NewPCG(uint64(seed), 0)))
	run.wg.Wait()
	t.Logf("faults: %v", faults)
	t.Run("P22_Objects", func(t *testing.T) { run.objects.Judge(t, "objects", Objects) })
	t.Run("P09_Leases", func(t *testing.T) { run.leases.Judge(t, "leases", Fences) })
	t.Run("KeysThatEnd", func(t *testing.T) { run.passing.Judge(t, "keys with a time to live", Passing) })
	t.Run("P12_Watches", run.judgeWatches)
	if ok := run.objects.Told()[OK]; ok == 0 || run.leases.Told()[OK] == 0 || run.passing.Told()[OK] == 0 {
		t.Error("nothing was ever done")
	}
}

// run is one run: what its clients share.
type run struct {
	f                        *fleet
	seed                     uint64
	wg                       sync.WaitGroup
	clients                  atomic.Uint64
	values                   atomic.Int64
	objects, leases, passing *Record

	mu      sync.Mutex
	written map[uint64]Event // by version: what clients were told of their writes
	watches [][]Event
}

func newRun(f *fleet, seed uint64) *run {
	return &run{f: f, seed: seed, objects: NewRecord(), leases: NewRecord(), passing: NewRecord(), written: map[uint64]Event{}}
}

// go_ starts a client with dice of its own.
func (r *run) go_(client func(*rand.Rand)) {
	rnd := rand.New(rand.NewPCG(r.seed, r.clients.Add(1)))
	r.wg.Go(func() { client(rnd) })
}

// value is one that nobody else writes.
func (r *run) value() string { return fmt.Sprint(r.values.Add(1)) }

// any is a member: clients have no favourite.
func (r *run) any(rnd *rand.Rand) *process { return r.f.members[rnd.IntN(len(r.f.members))] }

// key is one of the objects there are now.
func (r *run) key(rnd *rand.Rand) string {
	return fmt.Sprintf("o%d-%d", time.Duration(r.objects.Now())/time.Second/keysLast, rnd.IntN(keys))
}

func rest(ctx context.Context, rnd *rand.Rand, most time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(rnd.Int64N(int64(most)))):
	}
}

// patience is how long a client waits for an answer.
func patience(rnd *rand.Rand) time.Duration {
	return time.Duration(300+rnd.IntN(1500)) * time.Millisecond
}

// write reads objects and writes on what it has read.
func (r *run) write(ctx context.Context, client int, rnd *rand.Rand) {
	type seen struct {
		value   string
		version uint64
	}
	known := map[string]seen{}
	for ctx.Err() == nil {
		rest(ctx, rnd, 30*time.Millisecond)
		key := r.key(rnd)
		have := known[key]
		c := Call{Do: "get", Key: key}
		switch {
		case rnd.IntN(2) == 0:
		case have.value == "":
			c.Do, c.Value = "create", r.value()
		case rnd.IntN(5) == 0:
			c.Do, c.Expect = "delete", have.value
		default:
			c.Do, c.Value, c.Expect = "update", r.value(), have.value
		}
		p := r.any(rnd)
		a := r.objects.Do(client, c, func() Answer {
			return p.ask(Request{Do: c.Do, Key: key, Value: c.Value, Expect: c.Expect, Version: have.version}, patience(rnd))
		})
		delete(known, key)
		if a.Outcome == OK && c.Do != "delete" {
			known[key] = seen{a.Value, a.Version}
		}
		if a.Outcome == OK && c.Do != "get" {
			r.note(c, a)
		}
	}
}

// hold competes for a lease, and writes what only its holder may as long as it is allowed to.
func (r *run) hold(ctx context.Context, client int, rnd *rand.Rand) {
	key := fmt.Sprintf("lease-%d", client%2)
	var epoch string
	var version uint64
	for ctx.Err() == nil {
		rest(ctx, rnd, 60*time.Millisecond)
		p := r.any(rnd)
		switch dice := rnd.IntN(10); {
		case dice < 2:
			r.leases.Do(client, Call{Do: "get", Key: key}, func() Answer { return p.ask(Request{Do: "raw", Key: key}, patience(rnd)) })
		case dice < 4 || epoch == "":
			epoch, version = r.steal(client, key, rnd)
		default:
			c := Call{Do: "write", Key: key, Value: r.value(), Expect: epoch}
			a := r.leases.Do(client, c, func() Answer {
				return p.ask(Request{Do: "write", Key: key, Value: c.Value, Version: version}, patience(rnd))
			})
			if a.Outcome == Conflict {
				epoch = "" // somebody else has it
			}
		}
	}
}

// steal begins a new epoch on what it sees.
func (r *run) steal(client int, key string, rnd *rand.Rand) (epoch string, version uint64) {
	p := r.any(rnd)
	now := r.leases.Do(client, Call{Do: "epoch", Key: key}, func() Answer { return p.ask(Request{Do: "raw", Key: key + "-epoch"}, patience(rnd)) })
	if now.Outcome != OK && now.Outcome != NotFound {
		return "", 0
	}
	c := Call{Do: "acquire", Key: key, Value: r.value(), Expect: now.Value}
	a := r.leases.Do(client, c, func() Answer {
		return p.ask(Request{Do: "acquire", Key: key, Value: c.Value, Version: now.Version}, patience(rnd))
	})
	if a.Outcome != OK {
		return "", 0
	}
	return c.Value, a.Version
}

// passKeys writes keys that vanish, looks at them while they should be there, and until they are gone.
func (r *run) passKeys(ctx context.Context, rnd *rand.Rand) {
	var all []string
	look := func(key string) Answer {
		p := r.any(rnd)
		return r.passing.Do(1, Call{Do: "get", Key: key}, func() Answer { return p.ask(Request{Do: "raw", Key: key}, patience(rnd)) })
	}
	for n := 0; ctx.Err() == nil; n++ {
		key, p := fmt.Sprintf("pass-%d", n), r.any(rnd)
		c := Call{Do: "create", Key: key, Value: r.value(), Until: r.passing.Now() + int64(passFor*time.Second)}
		r.passing.Do(0, c, func() Answer {
			return p.ask(Request{Do: "pass", Key: key, Value: c.Value, TTL: passFor}, patience(rnd))
		})
		all = append(all, key)
		for range 4 {
			rest(ctx, rnd, 200*time.Millisecond)
			look(all[max(0, len(all)-1-rnd.IntN(6))])
		}
	}
	for _, key := range all {
		for end := time.Now().Add(30 * time.Second); look(key).Outcome != NotFound; time.Sleep(100 * time.Millisecond) {
			if time.Now().After(end) {
				r.f.t.Errorf("%s, with %d seconds to live, is still there", key, passFor)
				return
			}
		}
	}
}

// forget lets history be forgotten now and then: it happens to the members at different times, and their states must be the same all the same.
func (r *run) forget(ctx context.Context, rnd *rand.Rand) {
	for ctx.Err() == nil {
		rest(ctx, rnd, 2*time.Second)
		c, cancel := context.WithTimeout(ctx, callFor)
		_ = r.any(rnd).call(c, "Forget", int64(keepBehind), new(struct{})) // one that cannot now can later
		cancel()
	}
}

func (r *run) note(c Call, a Answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written[a.Version] = Event{Key: c.Key, Value: c.Value, Version: a.Version}
}

// watch follows all objects over one member after another, from where it was.
func (r *run) watch(ctx context.Context, rnd *rand.Rand) {
	var at uint64
	var events []Event
	for at == 0 {
		c, cancel := context.WithTimeout(context.Background(), callFor)
		_ = r.any(rnd).call(c, "Revision", struct{}{}, &at)
		cancel()
	}
	begin := at
	step := func() {
		c, cancel := context.WithTimeout(context.Background(), 2*watchFor)
		defer cancel()
		var w Watched
		if err := r.any(rnd).call(c, "Watch", at, &w); err != nil {
			rest(c, rnd, 50*time.Millisecond)
			return
		}
		if w.Gone {
			r.f.t.Error("a version of a moment ago is too old to watch from")
		}
		for _, ev := range w.Events {
			if ev.Version <= at {
				r.f.t.Errorf("P12: a watcher that had version %d is sent %+v", at, ev)
			}
			at, events = ev.Version, append(events, ev)
		}
	}
	for ctx.Err() == nil {
		step()
	}
	for end := time.Now().Add(20 * time.Second); at < r.newest() && time.Now().Before(end); {
		step()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watches = append(r.watches, append([]Event{{Version: begin}}, events...))
}

// newest is the last version that a client was told.
func (r *run) newest() (v uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for version := range r.written {
		v = max(v, version)
	}
	return v
}

// judgeWatches compares what watchers saw with what writers were told: each write once, at its version, with its value; and all watchers the
// same.
func (r *run) judgeWatches(t *testing.T) {
	all := map[uint64]Event{}
	for _, events := range r.watches {
		begin, saw := events[0].Version, map[uint64]Event{}
		for _, ev := range events[1:] {
			saw[ev.Version] = ev
			if other, ok := all[ev.Version]; ok && other != ev {
				t.Errorf("P12: watchers differ on version %d: %+v and %+v", ev.Version, other, ev)
			}
			all[ev.Version] = ev
		}
		for version, w := range r.written {
			ev, ok := saw[version]
			switch {
			case version <= begin:
			case !ok:
				t.Errorf("P12: a watcher has missed %+v", w)
			case ev.Key != w.Key || ev.Type != "DELETED" && ev.Value != w.Value || (ev.Type == "DELETED") != (w.Value == ""):
				t.Errorf("P12: a watcher saw %+v for %+v", ev, w)
			}
		}
		t.Logf("a watcher saw %d events in order, among them all %d writes that were confirmed", len(events)-1, len(r.written))
	}
}
