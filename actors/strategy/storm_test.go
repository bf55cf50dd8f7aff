package strategy

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Sizes of a storm.
const (
	// rounds is how many ticks there are at most before everything calms down.
	rounds = 16
	// betweenOdds is how many calls of the kernel there are to one during which something happens, crashOdds and failOdds to one that
	// kills it or fails.
	betweenOdds, crashOdds, failOdds = 12, 60, 80
	// calmTicks is within how many ticks everything must have come to rest when nothing happens any more, time included.
	calmTicks = 10
)

// storm is a world in which things happen, also while the kernel looks and acts.
type storm struct {
	*catalog
	rng      *rand.Rand
	settings Settings
	// latched are the settings of this tick.
	latched Settings
	seen    map[SetID]*sighting
	// calm keeps anything from happening. readOnly makes the kernel an observer.
	calm, readOnly bool
	// twins lets another kernel tick while this one does.
	twins bool
	// past are batches that were applied, to be repeated.
	past    []Batch
	reached map[string]int
	trace   *strings.Builder
}

// sighting is what the kernel has been told of a set in this tick.
type sighting struct {
	State
	version  int
	now      Time
	asked    bool
	hydrated map[ReplicaID]bool
	objects  bool
	refresh  *RefreshInputs
	// updates, changes and sheds count the batches of the tick by sort; last is what became of the last one, failed that it is unknown.
	updates, changes, sheds int
	last                    Outcome
	failed                  bool
}

// violation is the panic of a broken rule.
type violation string

func (s *storm) assert(ok bool, format string, args ...any) {
	if !ok {
		panic(violation(fmt.Sprintf(format, args...)))
	}
}

func (s *storm) note(format string, args ...any) {
	if s.trace != nil {
		fmt.Fprintf(s.trace, format+"\n", args...)
	}
}

func (s *storm) chance(odds int) bool { return !s.calm && s.rng.IntN(odds) == 0 }

func newStorm(seed uint64, trace *strings.Builder) *storm {
	s := &storm{
		catalog: newCatalog(), rng: rand.New(rand.NewPCG(seed, 5)), seen: map[SetID]*sighting{}, reached: map[string]int{}, trace: trace,
		settings: Settings{BurstEnabled: true},
	}
	if s.rng.IntN(2) == 0 {
		s.room = 4 + s.rng.IntN(20)
	}
	for i := range 1 + s.rng.IntN(3) {
		s.birth(SetID("abc"[i : i+1]))
	}
	s.between = func(call string) { s.meanwhile(call) }
	s.judge = s.judged
	return s
}

func (s *storm) birth(id SetID) {
	for {
		spec := s.anySpec(Spec{})
		if spec.Validate() != nil {
			continue
		}
		i := s.add(id, spec)
		i.UID += fmt.Sprint(len(s.log))
		i.objects = s.rng.IntN(4) > 0
		s.note("%s begins with %+v", id, spec)
		return
	}
}

// anySpec changes a spec, in one thing or in all.
func (s *storm) anySpec(spec Spec) Spec {
	all := spec.Config == Config{}
	if all || s.rng.IntN(2) == 0 {
		spec.Config.Shape.Size = []string{"S", "M", "L"}[s.rng.IntN(3)]
	}
	if all || s.rng.IntN(3) == 0 {
		spec.Config.ReplicationFactor = []int{1, 1, 2, 2, 3, 0}[s.rng.IntN(6)]
	}
	if s.rng.IntN(6) == 0 {
		spec.Config.Shape.AvailabilityZones = MakeZones([]string{"b", "a"}[:s.rng.IntN(3)]...)
		spec.Config.Shape.Template = []string{"", "t1", "t2"}[s.rng.IntN(3)]
	}
	if all || s.rng.IntN(4) == 0 {
		spec.Policy = Optional[BurstPolicy]{}
		if s.rng.IntN(2) == 0 {
			spec.Policy = Some(BurstPolicy{Size: []string{"S", "M", "L"}[s.rng.IntN(3)]})
			if s.rng.IntN(2) == 0 {
				spec.Policy.value.Linger = Some(time.Duration(s.rng.IntN(20)) * time.Second)
			}
		}
	}
	if s.rng.IntN(6) == 0 {
		spec.Schedule = Schedule{OnRefresh: s.rng.IntN(2) == 0, HydrationEstimate: time.Duration(s.rng.IntN(60)) * time.Second}
	}
	spec.Wait = Wait{OnTimeout: OnTimeout(s.rng.IntN(2))}
	if s.rng.IntN(4) > 0 {
		spec.Wait.Timeout = Some(time.Duration(s.rng.IntN(4)*s.rng.IntN(15)) * time.Second)
	}
	return spec
}

// meanwhile is what happens while the kernel calls.
func (s *storm) meanwhile(call string) {
	if s.chance(betweenOdds) {
		s.note("  during %s:", call)
		s.deed()
	}
	if s.twins && s.chance(betweenOdds) {
		s.twin()
	}
	if s.chance(crashOdds) {
		s.reached["crash in "+call]++
		s.note("  killed at %s", call)
		panic(killed{})
	}
}

// twin is a whole tick of another kernel, which takes itself for the only one.
func (s *storm) twin() {
	between := s.between
	s.between = nil
	defer func() { s.between = between }()
	s.note("  during a tick of another:")
	if _, err := New().Tick(s.catalog, s.settings); err != nil {
		panic(err)
	}
	s.reached["twin"]++
}

func (s *storm) pick() (SetID, *item) {
	ids := slices.Sorted(maps.Keys(s.items))
	if len(ids) == 0 {
		return "", nil
	}
	id := ids[s.rng.IntN(len(ids))]
	return id, s.items[id]
}

// deed is one thing that happens in the world.
func (s *storm) deed() {
	id, i := s.pick()
	if i == nil {
		s.birth("a")
		return
	}
	switch s.rng.IntN(20) {
	case 0, 1, 2, 3:
		before := i.Durable
		kind, err := s.change(id, func(spec *Spec) { *spec = s.anySpec(*spec) })
		s.note("  %s: change %s %v, %s", id, kind, err, i.View())
		s.foldRule(kind, err, before, i)
		s.reached["fold "+kind.String()]++
	case 4, 5, 6, 7, 8:
		s.turn(id, i, true, 1+s.rng.IntN(3))
	case 9:
		s.turn(id, i, false, 1+s.rng.IntN(3))
	case 10:
		s.die(id, i)
	case 11, 12, 13:
		s.now = s.now.After(time.Duration(s.rng.IntN(20)) * time.Second)
	case 14:
		s.now = s.now.After(time.Duration([]int{-3600, -7, 3600, 24 * 3600}[s.rng.IntN(4)]) * time.Second)
	case 15:
		if s.room >= 0 {
			s.room = 4 + s.rng.IntN(20)
		}
	case 16:
		i.objects = !i.objects
	case 17:
		s.refreshes(i)
	case 18:
		s.rarely(id, i)
	case 19:
		s.repeat()
	}
}

// turn makes replicas hydrated, or dry.
func (s *storm) turn(id SetID, i *item, to bool, n int) {
	for _, r := range i.replicas {
		if s.rng.IntN(3) < n {
			i.hydrated[r.ID] = to
		}
	}
	s.note("  %s: hydrated %v: %s", id, to, s.show(id))
}

func (s *storm) die(id SetID, i *item) {
	if len(i.replicas) > 0 {
		i.remove(i.replicas[s.rng.IntN(len(i.replicas))].ID)
		s.note("  %s: one died: %s", id, s.show(id))
	}
}

// refreshes lets the objects be due somewhere around now.
func (s *storm) refreshes(i *item) {
	around := func() time.Duration { return time.Duration(s.rng.IntN(120)-60) * time.Second }
	in := &RefreshInputs{ReadTimestamp: s.now, CompactionEstimate: time.Duration(s.rng.IntN(30)) * time.Second}
	for n := range s.rng.IntN(3) {
		frontier := s.now.After(around())
		in.Objects = append(in.Objects, RefreshObject{
			Name: fmt.Sprint("o", n), Frontier: Some(frontier),
			Schedule: RefreshSchedule{Every: []RefreshEvery{{Interval: time.Minute, AlignedTo: frontier}}},
		})
	}
	i.refresh = in
}

// rarely is what does not happen often.
func (s *storm) rarely(id SetID, i *item) {
	switch s.rng.IntN(5) {
	case 4:
		s.readOnly = !s.readOnly
		s.note("  read-only %v", s.readOnly)
	case 0:
		delete(s.items, id)
		s.birth(id)
	case 1:
		s.settings.BurstEnabled = !s.settings.BurstEnabled
		s.note("  bursts %v", s.settings.BurstEnabled)
	case 2:
		s.settings.BurstLinger = time.Duration(s.rng.IntN(10)) * time.Second
	case 3:
		s.next++
		shape := Shape{Size: []string{"S", "M", "L"}[s.rng.IntN(3)]}
		if name := fmt.Sprint("r", 1+s.rng.IntN(9)); i.named(name) == nil {
			i.replicas = append(i.replicas, Replica{ID: ReplicaID(fmt.Sprint("planted", s.next)), Name: name, Shape: shape})
			s.note("  %s: planted: %s", id, s.show(id))
		}
	}
}

// repeat applies a batch again that was applied before, as one does who did not hear the answer.
func (s *storm) repeat() {
	if len(s.past) == 0 {
		return
	}
	b := s.past[s.rng.IntN(len(s.past))]
	i, ok := s.items[b.Set]
	if !ok || s.decide(b) != Applied {
		return
	}
	names := len(i.replicas)
	s.do(b)
	s.note("  %s: again %s: %s", b.Set, deeds(b), s.show(b.Set))
	s.assert(len(i.replicas) <= names+len(b.Creates), "repeating a batch made too much")
	s.reached["repeated"]++
}

// The storm is what the kernel sees: the catalog, with notes of what it was told.

func (s *storm) Now() Time {
	now := s.catalog.Now()
	for _, one := range s.seen {
		one.now = now
	}
	return now
}

func (s *storm) States(ids []SetID) ([]State, error) {
	states, err := s.catalog.States(ids)
	for _, state := range states {
		one := &sighting{State: state, version: s.items[state.ID].version}
		if old := s.seen[state.ID]; old != nil {
			one.updates, one.last, one.failed = old.updates, old.last, old.failed
		}
		one.Replicas = slices.Clone(state.Replicas)
		s.seen[state.ID] = one
	}
	return states, s.mishap(err)
}

// mishap is err, or another error.
func (s *storm) mishap(err error) error {
	if err == nil && s.chance(failOdds) {
		s.note("  fails")
		return errBroken
	}
	return err
}

func (s *storm) HydratedReplicas(id SetID, ids []ReplicaID) ([]ReplicaID, error) {
	hydrated, err := s.catalog.HydratedReplicas(id, ids)
	one := s.seen[id]
	one.asked, one.hydrated = true, map[ReplicaID]bool{}
	for _, r := range hydrated {
		one.hydrated[r] = true
	}
	err = s.mishap(err)
	one.failed = one.failed || err != nil
	return hydrated, err
}

func (s *storm) HasHydratableObjects(id SetID) (bool, error) {
	has, err := s.catalog.HasHydratableObjects(id)
	s.seen[id].objects = has
	err = s.mishap(err)
	s.seen[id].failed = s.seen[id].failed || err != nil
	return has, err
}

func (s *storm) RefreshInputs(id SetID) (*RefreshInputs, error) {
	in, err := s.catalog.RefreshInputs(id)
	s.seen[id].refresh = in
	err = s.mishap(err)
	s.seen[id].failed = s.seen[id].failed || err != nil
	return in, err
}

func (s *storm) Apply(b Batch) (Outcome, error) {
	s.assert(!b.Empty() && !s.readOnly, "%s: a batch that is empty or of an observer", b.Set)
	one := s.seen[b.Set]
	s.sequence(one, b)
	outcome, err := s.catalog.Apply(b)
	s.note("%s %s: %s", b.Set, outcome, deeds(b))
	s.reached[outcome.String()]++
	s.assert(!s.calm || outcome != Rejected, "%s: rejected though nothing else happens", b.Set)
	one.last = outcome
	if outcome == Applied {
		s.past = append(s.past, b)
		s.note("  %s: %s: %s", b.Set, s.items[b.Set].View(), s.show(b.Set))
	}
	if s.chance(crashOdds) {
		s.reached["crash after apply"]++
		s.note("  killed after the apply")
		panic(killed{})
	}
	err = s.mishap(err)
	one.failed = one.failed || err != nil
	return outcome, err
}

// sequence holds the batches of one set and tick against the order they may come in.
func (s *storm) sequence(one *sighting, b Batch) {
	shed := one.last == Exhausted
	s.assert(!one.failed, "%s: goes on after an error", b.Set)
	s.assert(one.last == 0 || one.last == Applied || shed, "%s: goes on after it was rejected", b.Set)
	switch {
	case b.Update.Empty():
		one.changes++
	case shed:
		one.sheds++
	default:
		one.updates++
		s.assert(one.changes == 0, "%s: the state is written after the replicas", b.Set)
	}
	s.assert(one.updates <= 1 && one.changes <= 1 && one.sheds <= 1, "%s: too many batches in a tick", b.Set)
	s.assert(b.Update.Empty() || len(b.Creates)+len(b.Drops) == 0, "%s: state and replicas in one batch", b.Set)
}
