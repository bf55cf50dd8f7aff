package operatortest

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/actors/operator"
	"github.com/nodeactor/nodeactor/actors/operator/storage"
	"github.com/nodeactor/nodeactor/cluster/lease"
	"github.com/nodeactor/nodeactor/supervision"
)

// Size says how large a fleet is, and which of all its stories is played.
type Size struct {
	// Nodes is how many there are at first; a twentieth of them joins later. Manifests is how many there are in all.
	Nodes, Manifests int
	// Seed decides everything that is left to chance.
	Seed uint64
}

// FleetReport is what happened in a fleet.
type FleetReport struct {
	// Passes is how many passes ended, Panics how many of them in an injected panic, Fenced how many had a write refused.
	Passes, Panics, Fenced int
	// Taken is how many leases were taken, Released how many were given back.
	Taken, Released int
	// Crashed, CutOff, Frozen and Joined are nodes.
	Crashed, CutOff, Frozen, Joined int
	// Lasted is how much virtual time passed.
	Lasted time.Duration
	// Hash stands for the whole course: one seed has one.
	Hash uint64
}

// Fleet plays an operator on very many nodes: manifests are made, changed and deleted while nodes crash, are cut off, stand still and
// join, and passes panic; then all is calm, and in the end every manifest has to be Ready with its last specification, held by a node that
// lives, and nobody may hold more than its share. No effect of a holder that was followed by another one may ever be accepted.
//
// The operator's passes, what is stored of them, leases, fences and the store are the product's own; a loop with one clock stands for
// actors, mailboxes and network, so Sim is for those. Reconcile must not wait for anything but what it does itself. spec gives each
// manifest its specification, and another one when it is asked with another generation.
func Fleet[S operator.Specification](t testing.TB, op operator.Operator[S], size Size, spec func(i, generation int) S) FleetReport {
	t.Helper()
	f, err := newFleet(t, op, size, spec)
	if err != nil {
		t.Fatalf("cannot play a fleet: %v", err)
	}
	defer f.feed.Close()
	defer f.spare()()
	f.play()
	if !t.Failed() { // else the story has not come to its end
		f.judge()
	}
	if t.Failed() {
		t.Logf("seed %d, after %s", size.Seed, f.report.Lasted)
	}
	return f.report
}

// spare lets garbage of a large fleet be collected more seldom, as long as there is memory; what it returns ends that.
func (f *fleet[S]) spare() (end func()) {
	if f.size.Nodes*f.size.Manifests < large {
		return func() {}
	}
	percent, limit := debug.SetGCPercent(seldom), debug.SetMemoryLimit(plenty)
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}

// fleet is all nodes, their store, and what is known of the truth.
type fleet[S operator.Specification] struct {
	t      testing.TB
	size   Size
	spec   func(i, generation int) S
	rng    *rand.Rand
	clock  *clock
	runner *operator.Runner[S]
	plane  *operator.ControlPlane[S]
	store  *storage.MemoryStore
	feed   storage.Feed

	authority *lease.Authority
	sessions  lease.Sessions
	// log is what all nodes are told, in this order, each at its own pace.
	log    []lease.Event
	live   map[string]bool
	nodes  []*node
	byID   map[lease.SessionID]*node
	shared []*lease.Shared
	// chores are what is to be done later, in order of time.
	chores chores
	truth  map[string]*truth
	names  []string
	report FleetReport
}

// truth is what is known of a manifest from outside.
type truth struct {
	index, generation int
	deleted           bool
	// started is the highest epoch under which a pass began, accepted that of the last effect that was accepted.
	started, accepted uint64
	holder            lease.SessionID
}

// clock is the one time of a fleet.
type clock struct{ now time.Duration }

// epoch is when virtual time begins.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (c *clock) Now() time.Time { return epoch.Add(c.now) }

// AfterFunc never comes to calling f: what a fleet does later it does by itself.
func (c *clock) AfterFunc(time.Duration, func()) func() bool { return func() bool { return true } }

func (c *clock) Sleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

var _ supervision.Clock = (*clock)(nil)

func newFleet[S operator.Specification](t testing.TB, op operator.Operator[S], size Size, spec func(i, generation int) S) (*fleet[S], error) {
	if size.Nodes < 2 || size.Manifests < 1 {
		return nil, fmt.Errorf("it takes two nodes and a manifest, not %+v", size)
	}
	f := &fleet[S]{
		t: t, size: size, spec: spec, rng: rand.New(rand.NewPCG(size.Seed, 0x666c656574)), clock: &clock{},
		live: map[string]bool{}, byID: map[lease.SessionID]*node{}, truth: map[string]*truth{}, authority: lease.NewAuthority(0),
	}
	for range workers {
		f.shared = append(f.shared, lease.Share())
	}
	var err error
	if f.runner, err = operator.NewRunner(wrap(op, f.stumble), operator.OperatorConfig{}); err != nil {
		return nil, err
	}
	f.store = storage.Memory(storage.WithClock(f.clock))
	quiet := operator.WithLogger(slog.New(slog.DiscardHandler))
	if f.plane, err = operator.NewControlPlane(op, operator.OperatorConfig{}, f.store, operator.WithClock(f.clock), operator.WithBoot("fleet"), quiet); err != nil {
		return nil, err
	}
	f.feed, err = f.store.Watch(0, storage.Filter{Objects: true, Leases: true, KeysOnly: true}, func() {})
	return f, err
}

// play runs the whole story.
func (f *fleet[S]) play() {
	f.script()
	for f.clock.now <= lasts && !f.t.Failed() {
		f.chores.until(f.clock.now)
		f.listen()
		f.think()
		f.act()
		f.clock.now += step
	}
	f.report.Lasted = f.clock.now
}

// listen puts what has changed in the store, and of the sessions, into the log.
func (f *fleet[S]) listen() {
	changes, err := f.feed.Take()
	if err != nil {
		f.t.Fatalf("the feed of the store ended: %v", err)
	}
	for _, c := range changes {
		f.heard(c)
	}
	f.authority.Expire(f.clock.now)
	if now := f.authority.Sessions(f.clock.now); !sameSessions(now, f.sessions) {
		f.sessions = now
		f.log = append(f.log, now)
	}
}

func (f *fleet[S]) heard(c storage.Change) {
	if c.Manifest != "" {
		f.truth[c.Manifest].holder = c.Lease.Holder
		f.log = append(f.log, lease.Observed{Manifest: c.Manifest, Stored: c.Lease})
		return
	}
	key := c.Object.Key()
	if f.live[key] == c.Deleted {
		f.live[key] = !c.Deleted
		f.log = append(f.log, lease.Manifest{Name: key, Gone: c.Deleted})
	}
	if holder := f.byID[f.truth[key].holder]; holder != nil {
		holder.changed = append(holder.changed, key)
	}
}

func sameSessions(a, b lease.Sessions) bool {
	return a.Grace == b.Grace && slices.Equal(a.Live, b.Live)
}
