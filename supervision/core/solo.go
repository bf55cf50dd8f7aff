package core

import "time"

// Solo is the state of one member of a pool: it has a budget of its own and no siblings
// that share its fate. The zero value has never lived and never failed.
type Solo struct {
	State    State
	Restarts int
	// since is when State was entered, as Unix nanoseconds to stay small.
	since   int64
	trouble *trouble
}

// trouble is the history of a member that has failed; most members never need one.
type trouble struct {
	budgets  budgets
	failures [NumFaultKinds]int
	// broken is when the trouble began that has not been repaired yet, next when the next
	// generation is due; Unix nanoseconds, 0 for never.
	broken, next int64
	fault        FaultKind
	faulted      bool
	// park: the member was or is to be parked, which lasts until it has served for long.
	park bool
}

// Begin notes the start of a generation.
func (s *Solo) Begin(now time.Time) {
	s.Enter(Starting, now)
	if s.trouble != nil {
		s.trouble.faulted = false
	}
}

// Ready notes the acknowledgement of a start, and tells how long the member had been broken.
func (s *Solo) Ready(now time.Time) (repair time.Duration) {
	if s.State != Starting {
		return 0
	}
	s.Enter(Running, now)
	if t := s.trouble; t != nil && t.broken != 0 {
		repair, t.broken = time.Duration(now.UnixNano()-t.broken), 0
	}
	return repair
}

// Enter notes a new state.
func (s *Solo) Enter(state State, now time.Time) {
	s.State, s.since = state, now.UnixNano()
	if s.trouble != nil {
		s.trouble.next = 0
	}
}

// Since is when State was entered.
func (s *Solo) Since() time.Time { return moment(s.since) }

// NextTry is when a waiting member is started again; zero when it does not wait.
func (s *Solo) NextTry() time.Time {
	if s.trouble == nil {
		return time.Time{}
	}
	return moment(s.trouble.next)
}

func moment(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// Faulted notes a fault of the live generation and reports whether the pool itself has to
// fail. Beyond the intensities of the pool g the member is parked. A parked member that
// fails again before it has served for the back-off's Reset is parked again.
func (s *Solo) Faulted(spec *ChildSpec, g *GroupSpec, kind FaultKind, now time.Time) (escalate bool) {
	if s.trouble == nil {
		s.trouble = &trouble{budgets: newBudgets(*g)}
	}
	t, cell := s.trouble, spec.Policy[kind]
	if s.State == Running && now.UnixNano()-s.since >= int64(cell.Backoff.Reset) {
		t.failures[kind], t.park = 0, false
	}
	t.failures[kind]++
	t.fault, t.faulted = kind, true
	if t.broken == 0 {
		t.broken = now.UnixNano()
	}
	t.park = cell.Do == DoPark || cell.Do == DoRestart && kind != BindFailure && (t.park || !t.budgets.spend(now))
	s.Enter(Stopping, now)
	return cell.Do == DoEscalate
}

// Forgive forgets all failures, as a restart by hand does.
func (s *Solo) Forgive() { s.trouble = nil }

// AfterExit tells how long the member has to wait for its next generation; up is false
// when it stays dead. A member that ended without a fault is started again at once.
func (s *Solo) AfterExit(spec *ChildSpec, now time.Time, rnd float64) (delay time.Duration, up bool) {
	t := s.trouble
	if t == nil || !t.faulted {
		s.Enter(Idle, now)
		return 0, true
	}
	cell := spec.Policy[t.fault]
	if spec.Restart == Temporary || cell.Do == DoStop || cell.Do == DoEscalate {
		s.Enter(Dead, now)
		return 0, false
	}
	delay, state := cell.Backoff.Delay(t.failures[t.fault], rnd), BackingOff
	if t.park {
		delay, state = cell.Backoff.Cap, Parked
	}
	s.Enter(state, now)
	t.next = now.Add(delay).UnixNano()
	return delay, true
}
