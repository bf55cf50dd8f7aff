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
	budget   budget
	failures [NumFaultKinds]int
	fault    FaultKind
	faulted  bool
	park     bool
}

// Begin notes the start of a generation.
func (s *Solo) Begin(now time.Time) {
	s.enter(Starting, now)
	if s.trouble != nil {
		s.trouble.faulted = false
	}
}

// Ready notes the acknowledgement of a start.
func (s *Solo) Ready(now time.Time) {
	if s.State == Starting {
		s.enter(Running, now)
	}
}

func (s *Solo) enter(state State, now time.Time) { s.State, s.since = state, now.UnixNano() }

// Faulted notes a fault of the live generation and reports whether the pool itself has to
// fail. Beyond the intensity the member is parked.
func (s *Solo) Faulted(spec *ChildSpec, in Intensity, kind FaultKind, now time.Time) (escalate bool) {
	if s.trouble == nil {
		s.trouble = &trouble{budget: budget{intensity: in}}
	}
	t, cell := s.trouble, spec.Policy[kind]
	if s.State == Running && now.UnixNano()-s.since >= int64(cell.Backoff.Reset) {
		t.failures[kind] = 0
	}
	t.failures[kind]++
	t.fault, t.faulted = kind, true
	t.park = cell.Do == DoPark || cell.Do == DoRestart && kind != BindFailure && !t.budget.spend(now)
	s.enter(Stopping, now)
	return cell.Do == DoEscalate
}

// Forgive forgets all failures, as a restart by hand does.
func (s *Solo) Forgive() { s.trouble = nil }

// AfterExit tells how long the member has to wait for its next generation; up is false
// when it stays dead. A member that ended without a fault is started again at once.
func (s *Solo) AfterExit(spec *ChildSpec, now time.Time, rnd float64) (delay time.Duration, up bool) {
	t := s.trouble
	if t == nil || !t.faulted {
		s.enter(Idle, now)
		return 0, true
	}
	cell := spec.Policy[t.fault]
	if spec.Restart == Temporary || cell.Do == DoStop || cell.Do == DoEscalate {
		s.enter(Dead, now)
		return 0, false
	}
	if t.park {
		s.enter(Parked, now)
		return cell.Backoff.Cap, true
	}
	s.enter(BackingOff, now)
	return cell.Backoff.Delay(t.failures[t.fault], rnd), true
}
