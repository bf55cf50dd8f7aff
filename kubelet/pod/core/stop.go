package core

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
)

// grace is the time the pod's containers get between the stop signal and SIGKILL.
func (m *Machine) grace() time.Duration {
	s := int64(defaultGrace / time.Second)
	if p := m.pod.Spec.TerminationGracePeriodSeconds; p != nil {
		s = *p
	}
	if p := m.pod.DeletionGracePeriodSeconds; p != nil && m.pod.DeletionTimestamp != nil {
		s = *p
	}
	return max(time.Duration(s)*time.Second, minGrace)
}

// stopAll ends all runs, then takes the pod apart, then, if it is leaving, forgets it.
func (m *Machine) stopAll(now time.Time, w *wake) []Action {
	if m.stopSince.IsZero() {
		m.stopSince = now
	}
	killAt := m.stopSince.Add(m.grace())
	busy := false
	for _, c := range m.containers {
		busy = busy || c.running() || c.starting
		if !c.running() {
			continue
		}
		if at := killAt; c.stop != nil {
			if c.stop.killAt.After(at) && m.leaving() {
				c.stop.killAt = at // the grace period was shortened
			}
		} else if c.role != sidecarRole {
			m.endRun(c, max(at.Sub(now), 0), "Stopping container "+c.spec.Name, now)
		}
	}
	m.stopSidecars(killAt, now)
	if busy || m.sandbox.progress == underway || m.volumes.progress == underway {
		return nil
	}
	return m.dismantle(now, w)
}

// stopSidecars ends sidecars last to first, each once everything it serves has ended.
func (m *Machine) stopSidecars(killAt, now time.Time) {
	for i := len(m.containers) - 1; i >= 0; i-- {
		c := m.containers[i]
		if !c.running() && !c.starting {
			continue
		}
		if c.role == sidecarRole && c.stop == nil && c.running() {
			m.endRun(c, max(killAt.Sub(now), sidecarGrace), "Stopping container "+c.spec.Name, now)
		}
		return
	}
}

// endRun begins the ending of c's run; the Event's message is not recorded when empty.
func (m *Machine) endRun(c *container, grace time.Duration, message string, now time.Time) {
	if c.stop != nil || !c.running() {
		return
	}
	c.stop = &stop{killAt: now.Add(grace)}
	if message != "" {
		m.record(v1.EventTypeNormal, "Killing", message, c.spec.Name)
	}
}

// stopRuns signals and kills the runs whose ending has begun.
func (m *Machine) stopRuns(now time.Time, w *wake) (out []Action) {
	for _, c := range m.containers {
		s := c.stop
		if s == nil || !c.running() {
			continue
		}
		if s.sent == idle {
			s.sent = underway
			out = append(out, Action{Kind: StopContainer, Container: c.spec.Name, ID: c.cur.ID, Grace: max(s.killAt.Sub(now), 0)})
		}
		at := s.killAt
		if s.retryAt.After(at) {
			at = s.retryAt
		}
		switch {
		case s.killing:
		case now.Before(at):
			w.at(at)
		default:
			s.killing = true
			out = append(out, Action{Kind: KillContainer, Container: c.spec.Name, ID: c.cur.ID})
		}
	}
	return out
}

// dismantle removes what the pod had on this node, and the pod itself if it is leaving.
func (m *Machine) dismantle(now time.Time, w *wake) []Action {
	if m.teardown.progress != done {
		return m.stage(&m.teardown, Teardown, now, w)
	}
	if !m.leaving() {
		return nil
	}
	return m.stage(&m.finalize, Finalize, now, w)
}

// describe is the machine's state in one line, for traces.
func (m *Machine) describe() string {
	s := fmt.Sprintf("volumes=%d sandbox=%d", m.volumes.progress, m.sandbox.progress)
	for _, c := range m.containers {
		s += fmt.Sprintf(" %s(running=%t attempts=%d ready=%t)", c.spec.Name, c.running(), c.attempts, c.ready)
	}
	return s
}
