package core

import v1 "k8s.io/api/core/v1"

// phase sums the containers up in one word.
func (m *Machine) phase() v1.PodPhase {
	if m.rejected != nil || m.deadline {
		return v1.PodFailed
	}
	if p := m.lastWritten.Phase; p == v1.PodSucceeded || p == v1.PodFailed {
		return p
	}
	n := m.count()
	switch {
	case m.terminal:
		return m.endPhase(n)
	case m.Stopping() && n.running == 0 && n.ended > 0 && n.fresh == 0 && !m.anyRunning():
		return m.endPhase(n)
	case !m.initialized() && !m.Stopping():
		return v1.PodPending
	case n.fresh > 0:
		return v1.PodPending
	case n.running > 0 || n.ended > 0:
		return v1.PodRunning
	}
	return v1.PodPending
}

// counts of the main containers: running, ended (to be restarted or not), never run.
type counts struct{ running, ended, succeeded, fresh int }

func (m *Machine) count() (n counts) {
	for _, c := range m.containers {
		switch {
		case c.role != mainRole:
		case c.running():
			n.running++
		case c.cur != nil && !c.stale:
			n.ended++
			if c.cur.ExitCode == 0 {
				n.succeeded++
			}
		case c.last != nil || c.stale:
			n.ended++
		default:
			n.fresh++
		}
	}
	return n
}

func (m *Machine) endPhase(n counts) v1.PodPhase {
	if n.fresh == 0 && n.succeeded == n.ended && m.initSucceeded() {
		return v1.PodSucceeded
	}
	return v1.PodFailed
}

func (m *Machine) initSucceeded() bool {
	for _, c := range m.containers {
		if c.role == initRole && c.cur != nil && c.cur.ExitCode != 0 {
			return false
		}
	}
	return true
}

func (m *Machine) anyRunning() bool {
	for _, c := range m.containers {
		if c.running() || c.starting {
			return true
		}
	}
	return false
}
