package core

import "time"

// Solo is the state of one member of a pool: it has a budget of its own and no siblings
// that share its fate.
type Solo struct {
	State    State
	Restarts int
	Since    time.Time
	// window is when the budget's window began, spent what was used since.
	window   time.Time
	spent    int
	failures int
	fault    FaultKind
	faulted  bool
}

// Begin notes the start of a generation.
func (s *Solo) Begin(now time.Time) { s.State, s.Since, s.faulted = Starting, now, false }

// Faulted notes a fault of the live generation. Beyond the intensity the member is parked.
func (s *Solo) Faulted(spec ChildSpec, in Intensity, kind FaultKind, now time.Time) {
	cell := spec.Policy[kind]
	if now.Sub(s.Since) >= cell.Backoff.Reset {
		s.failures = 0
	}
	if now.Sub(s.window) >= in.Within {
		s.window, s.spent = now, 0
	}
	s.failures++
	s.spent++
	s.fault, s.faulted, s.State = kind, true, Stopping
	if s.spent > in.Max && cell.Do == DoRestart || cell.Do == DoPark {
		s.failures = max(s.failures, parkedFailures)
	}
}

// parkedFailures puts any back-off at its cap.
const parkedFailures = 1 << 10

// AfterExit tells how long the member has to wait for its next generation; up is false
// when it stays dead. A member that ended without a fault is started again at once.
func (s *Solo) AfterExit(spec ChildSpec, rnd float64) (delay time.Duration, up bool) {
	if !s.faulted {
		s.State = Idle
		return 0, true
	}
	cell := spec.Policy[s.fault]
	if spec.Restart == Temporary || cell.Do == DoStop || cell.Do == DoEscalate {
		s.State = Dead
		return 0, false
	}
	if s.failures >= parkedFailures {
		s.State = Parked
		return cell.Backoff.Cap, true
	}
	s.State = BackingOff
	return cell.Backoff.Delay(s.failures, rnd), true
}
