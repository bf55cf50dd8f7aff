package strategy

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// DefaultInterval is the time between two ticks unless it is configured.
const DefaultInterval = 5 * time.Second

// Kernel decides about the replicas of all managed sets. It keeps nothing between two ticks: whatever it was about to do when it was
// dropped, the next tick finds out anew from what is stored.
type Kernel struct {
	// Strategies come in order of precedence, which settles the reason of a create. When resources run out the last is given up first.
	Strategies []Strategy
	// Alarm, unless it is nil, is told of each conflict, which is a bug in a strategy. Tests let it panic.
	Alarm func(Conflict)
}

// New gives the kernel with all strategies there are.
func New() *Kernel {
	return &Kernel{Strategies: []Strategy{Baseline{}, GracefulReconfiguration{}, HydrationBurst{}, OnRefresh{}}}
}

// Report is what a tick did.
type Report struct {
	// Sets is how many there were. Applied, Rejected and Exhausted count batches by outcome; those that shed a strategy are among them.
	Sets, Applied, Rejected, Exhausted int
	// Shed are the sets of which a strategy was given up.
	Shed []SetID
	// Conflicts are the alarms, Errors what left sets out.
	Conflicts []Conflict
	Errors    []SetError
}

// SetError says why a set was left out of a tick.
type SetError struct {
	Set SetID
	Err error
}

// Error is the error for people.
func (e SetError) Error() string { return fmt.Sprintf("cannot tend set %s: %v", e.Set, e.Err) }

// Unwrap gives the cause.
func (e SetError) Unwrap() error { return e.Err }

// Tick looks at all sets and does what they need. An error says that the sets could not be read; what was done before it stays done.
func (k *Kernel) Tick(ctx Context, settings Settings) (Report, error) {
	t := &tick{Kernel: k, ctx: ctx, settings: settings, out: map[SetID]bool{}}
	err := t.run()
	return t.report, err
}

// tick is one tick.
type tick struct {
	*Kernel
	ctx      Context
	settings Settings
	// now is read anew for each step.
	now Time
	// out holds the sets that this tick has done with.
	out    map[SetID]bool
	issued bool
	report Report
}

// sight is a set with its signals.
type sight struct {
	state   State
	request Request
	signals Signals
}

func (t *tick) run() error {
	ids, err := t.ctx.ManagedSets()
	if err != nil {
		return fmt.Errorf("cannot list the managed sets: %w", err)
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	sights, err := t.look(ids)
	if err != nil {
		return err
	}
	t.report.Sets = len(sights)
	t.each(sights, t.updateState)
	if t.issued {
		// What was written has to be seen, and by it the signals that it makes necessary.
		if sights, err = t.look(ids); err != nil {
			return err
		}
	}
	t.each(sights, t.replicas)
	return nil
}

// look reads the sets and the signals that are wanted of them.
func (t *tick) look(ids []SetID) ([]sight, error) {
	states, err := t.ctx.States(ids)
	if err != nil {
		return nil, fmt.Errorf("cannot read the managed sets: %w", err)
	}
	slices.SortFunc(states, func(a, b State) int { return cmp.Compare(a.ID, b.ID) })
	sights := make([]sight, 0, len(states))
	for _, state := range states {
		if t.out[state.ID] {
			continue
		}
		one := sight{state: state}
		for _, s := range t.Strategies {
			one.request = one.request.union(s.Request(state, t.settings))
		}
		if err := t.fetch(&one); err != nil {
			t.fail(state.ID, err)
			continue
		}
		sights = append(sights, one)
	}
	return sights, nil
}

// fetch gets the requested signals.
func (t *tick) fetch(one *sight) error {
	if one.request.Hydration {
		if err := t.fetchHydration(one); err != nil {
			return err
		}
	}
	if one.request.HydratableObjects {
		has, err := t.ctx.HasHydratableObjects(one.state.ID)
		if err != nil {
			return fmt.Errorf("cannot tell whether it has hydratable objects: %w", err)
		}
		one.signals.HasHydratableObjects = has
	}
	if one.request.RefreshWindow {
		inputs, err := t.ctx.RefreshInputs(one.state.ID)
		if err != nil {
			return fmt.Errorf("cannot tell what is to be refreshed: %w", err)
		}
		one.signals.Refresh = inputs
	}
	return nil
}

func (t *tick) fetchHydration(one *sight) error {
	one.request.Hydration = true
	if len(one.state.Replicas) == 0 {
		return nil
	}
	hydrated, err := t.ctx.HydratedReplicas(one.state.ID, one.state.ids())
	if err != nil {
		return fmt.Errorf("cannot tell which replicas are hydrated: %w", err)
	}
	one.signals.Hydrated = make(map[ReplicaID]bool, len(hydrated))
	for _, id := range hydrated {
		one.signals.Hydrated[id] = true
	}
	return nil
}

// each does a step for every set that is still in.
func (t *tick) each(sights []sight, step func(*sight)) {
	t.now = t.ctx.Now()
	for i := range sights {
		if !t.out[sights[i].state.ID] {
			step(&sights[i])
		}
	}
}

// updateState is the first step: what is stored about the set.
func (t *tick) updateState(one *sight) {
	var contributions []Contribution
	for _, s := range t.Strategies {
		if write := s.Update(one.state, one.signals, t.settings, t.now); !write.Empty() {
			contributions = append(contributions, Contribution{s.Cause(), write})
		}
	}
	if len(contributions) == 0 {
		return
	}
	write, conflicts := Merge(one.state.ID, contributions)
	t.alarm(conflicts)
	outcome, issued := t.apply(one.state, Batch{Update: write.against(one.state.Durable)})
	t.issued = t.issued || issued
	t.out[one.state.ID] = issued && outcome != Applied
}

func (t *tick) alarm(conflicts []Conflict) {
	t.report.Conflicts = append(t.report.Conflicts, conflicts...)
	for _, c := range conflicts {
		if t.Alarm != nil {
			t.Alarm(c)
		}
	}
}

// replicas is the second step: which replicas there are.
func (t *tick) replicas(one *sight) {
	wishes := make([][]Slots, 0, len(t.Strategies))
	for _, s := range t.Strategies {
		wishes = append(wishes, s.Desired(one.state, one.signals, t.settings, t.now))
	}
	wants := union(wishes)
	if surplus(one.state, wants) && !one.request.Hydration {
		if err := t.fetchHydration(one); err != nil {
			t.fail(one.state.ID, err)
			return
		}
	}
	creates, drops := diff(one.state, wants, one.signals.Hydrated)
	if outcome, _ := t.apply(one.state, Batch{Creates: creates, Drops: drops}); outcome == Exhausted || one.state.NoRoom && !t.out[one.state.ID] {
		t.shed(one.state)
	}
}

// shed gives up at most one strategy; the next tick sees whether that was enough.
func (t *tick) shed(state State) {
	for _, s := range slices.Backward(t.Strategies) {
		expendable, ok := s.(Expendable)
		if !ok {
			continue
		}
		if write := expendable.Shed(state).against(state.Durable); !write.Empty() {
			if outcome, _ := t.apply(state, Batch{Update: write}); outcome == Applied {
				t.report.Shed = append(t.report.Shed, state.ID)
			}
			return
		}
	}
}

// apply has a batch done that was decided from the state; issued is false when there was nothing to do.
func (t *tick) apply(state State, batch Batch) (outcome Outcome, issued bool) {
	if batch.Empty() {
		return 0, false
	}
	batch.Set, batch.Expected = state.ID, state.Witness()
	outcome, err := t.ctx.Apply(batch)
	if err != nil {
		t.fail(state.ID, fmt.Errorf("cannot tell what became of a batch: %w", err))
		return 0, true
	}
	switch outcome {
	case Applied:
		t.report.Applied++
	case Exhausted:
		t.report.Exhausted++
	default:
		t.report.Rejected++
	}
	return outcome, true
}

// fail leaves a set out of the rest of the tick.
func (t *tick) fail(set SetID, err error) {
	t.out[set] = true
	t.report.Errors = append(t.report.Errors, SetError{set, err})
}
