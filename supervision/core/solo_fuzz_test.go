package core

import (
	"testing"
	"time"
)

// soloModel is the obvious account of a pool's member: all restarts that were granted, and
// what was decided last.
type soloModel struct {
	g        GroupSpec
	granted  []time.Time
	failures [NumFaultKinds]int
	parked   bool
}

// fault says what has to become of the member and for how long it waits.
func (m *soloModel) fault(cell Reaction, kind FaultKind, served time.Duration, now time.Time) (State, time.Duration) {
	if served >= cell.Backoff.Reset {
		m.failures[kind], m.parked = 0, false
	}
	m.failures[kind]++
	if kind == BindFailure {
		m.parked = false
	} else if !m.parked {
		m.parked = !recent(m.granted, now, m.g.Intensity) || !recent(m.granted, now, m.g.Sustained)
		if !m.parked {
			m.granted = append(m.granted, now)
		}
	}
	if m.parked {
		return Parked, cell.Backoff.Cap
	}
	return BackingOff, cell.Backoff.Delay(m.failures[kind], 0)
}

// FuzzSolo plays lives of a member, each with a time of service and a fault, against the model.
func FuzzSolo(f *testing.F) {
	f.Add(uint8(2), uint8(3), []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add(uint8(3), uint8(1), []byte{1, 30, 2, 200, 3, 0, 0, 255, 0, 1, 1, 40})
	f.Fuzz(func(t *testing.T, burst, slow uint8, lives []byte) {
		spec := testChild("m")
		g := GroupSpec{Intensity: Intensity{Max: 1 + int(burst)%5, Within: 20 * time.Second}}
		g.Sustained = Intensity{Max: g.Intensity.Max + int(slow)%5, Within: 5 * time.Minute}
		s, m, now := &Solo{}, &soloModel{g: g}, time.Unix(1e9, 0)
		for i := 0; i+1 < len(lives); i += 2 {
			kind := []FaultKind{Panic, ErrorReturn, BindFailure, Hang}[lives[i]%4]
			served := time.Duration(lives[i+1]) * 300 * time.Millisecond
			s.Begin(now)
			s.Ready(now)
			now = now.Add(served)
			if s.Faulted(&spec, &g, kind, now) {
				t.Fatal("a member whose policy is to restart takes its pool down")
			}
			state, wait := m.fault(spec.Policy[kind], kind, served, now)
			got, up := s.AfterExit(&spec, now, 0)
			if s.State != state || got != wait || !up || !s.NextTry().Equal(now.Add(wait)) {
				t.Fatalf("life %d: the member is %v for %v until %v, want %v for %v", i/2, s.State, got, s.NextTry(), state, wait)
			}
			now = now.Add(wait)
		}
	})
}
