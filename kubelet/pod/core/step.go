package core

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
)

// wake collects the earliest time at which something is due.
type wake struct{ t time.Time }

func (w *wake) at(t time.Time) {
	if w.t.IsZero() || t.Before(w.t) {
		w.t = t
	}
}

// Step returns what is to be done now, and when Step must be called again even if nothing happens (zero: never).
func (m *Machine) Step(now time.Time) ([]Action, time.Time) {
	if m.finalized {
		return nil, time.Time{}
	}
	w := &wake{}
	m.settle(now, w)
	var out []Action
	if m.Stopping() {
		out = m.stopAll(now, w)
	} else {
		out = m.run(now, w)
	}
	out = append(out, m.stopRuns(now, w)...)
	out = append(out, m.dueProbes(now, w)...)
	out = append(out, m.removeOld()...)
	out = append(out, m.pending...)
	m.pending = nil
	return out, w.t
}

// settle draws conclusions that need no action: the deadline, started containers, the pod's end.
func (m *Machine) settle(now time.Time, w *wake) {
	if s := m.pod.Spec.ActiveDeadlineSeconds; s != nil && !m.Stopping() {
		at := m.startTime.Add(time.Duration(*s) * time.Second)
		if now.Before(at) {
			w.at(at)
		} else {
			m.deadline = true
			m.record(v1.EventTypeNormal, "DeadlineExceeded", "Pod was active on the node longer than the specified deadline", "")
		}
	}
	for _, c := range m.containers {
		if c.changed && !m.Stopping() {
			m.endRun(c, m.grace(), fmt.Sprintf("Container %s definition changed, will be restarted", c.spec.Name), now)
		}
		if c.running() && c.hook == done && c.spec.StartupProbe == nil {
			c.started = true
		}
		if c.running() && c.started && c.spec.ReadinessProbe == nil {
			c.ready = true
		}
	}
	if !m.terminal && !m.Stopping() && m.overForGood() {
		m.terminal = true
	}
}

// overForGood tells whether no container of the pod will run again.
func (m *Machine) overForGood() bool {
	if m.sandbox.progress != done || m.sandboxBroken {
		return false
	}
	for _, c := range m.containers {
		if c.role == initRole && c.ended() && c.cur.ExitCode != 0 && !m.willRestart(c) {
			return true
		}
	}
	for _, c := range m.containers {
		if c.role == mainRole && (!c.ended() || m.willRestart(c)) {
			return false
		}
	}
	return true
}

// run brings the pod closer to running.
func (m *Machine) run(now time.Time, w *wake) (out []Action) {
	out = append(out, m.prepare(now, w)...)
	ready := m.volumes.progress == done && m.sandbox.progress == done && !m.sandboxBroken
	for _, c := range m.next() {
		out = append(out, m.bring(c, ready, now, w)...)
	}
	return out
}

// prepare sees to volumes and sandbox, side by side.
func (m *Machine) prepare(now time.Time, w *wake) (out []Action) {
	if m.sandboxBroken {
		if m.sandbox.retryAt.After(now) {
			w.at(m.sandbox.retryAt)
		} else if m.sandbox.progress == done {
			m.sandbox.progress = underway
			out = append(out, Action{Kind: ResetSandbox})
		}
	} else {
		out = append(out, m.stage(&m.sandbox, CreateSandbox, now, w)...)
	}
	return append(out, m.stage(&m.volumes, MountVolumes, now, w)...)
}

func (m *Machine) stage(s *stage, k Kind, now time.Time, w *wake) []Action {
	if s.due(now) {
		s.progress = underway
		return []Action{{Kind: k}}
	}
	if s.progress == idle {
		w.at(s.retryAt)
	}
	return nil
}

// next returns the containers that should run now: sidecars passed, the init container whose turn it is, or all others.
func (m *Machine) next() (out []*container) {
	started := m.mainsStarted()
	for _, c := range m.containers {
		switch c.role {
		case sidecarRole:
			out = append(out, c)
			if !started && !(c.running() && c.started) {
				return out
			}
		case initRole:
			if !started && !c.succeeded() {
				return append(out, c)
			}
		case mainRole:
			out = append(out, c)
		case ephemeralRole:
			if started && c.attempts == 0 {
				out = append(out, c)
			}
		}
	}
	return out
}

// mainsStarted tells whether a main container has run in the present sandbox; init containers are then past.
func (m *Machine) mainsStarted() bool {
	for _, c := range m.containers {
		if c.role == mainRole && (c.starting || c.cur != nil && !c.stale) {
			return true
		}
	}
	return false
}

// initialized tells whether all init containers have done their part.
func (m *Machine) initialized() bool {
	if m.mainsStarted() {
		return true
	}
	for _, c := range m.containers {
		if c.role == initRole && !c.succeeded() || c.role == sidecarRole && !(c.running() && c.started) {
			return false
		}
	}
	return true
}

// bring brings c closer to running.
func (m *Machine) bring(c *container, podReady bool, now time.Time, w *wake) []Action {
	switch {
	case c.starting || c.running():
		if c.running() && c.hook == idle {
			c.hook = underway
			return []Action{{Kind: PostStart, Container: c.spec.Name, ID: c.cur.ID}}
		}
		return nil
	case c.ended() && !m.willRestart(c):
		return nil
	case now.Before(c.retryAt):
		w.at(c.retryAt)
		m.backOff(c, now)
		return nil
	case c.image.progress != done:
		return m.ensureImage(c, now, w)
	case !podReady:
		return nil
	}
	c.starting = true
	return []Action{{Kind: StartContainer, Container: c.spec.Name, Attempt: c.attempts}}
}

// backOff tells, now and then, that the container waits for its next run.
func (m *Machine) backOff(c *container, now time.Time) {
	if c.crashes < 2 || now.Sub(c.backOffEvent) < backOffEventEvery {
		return
	}
	c.backOffEvent = now
	m.record(v1.EventTypeWarning, "BackOff", fmt.Sprintf("Back-off restarting failed container %s in pod %s_%s(%s)",
		c.spec.Name, m.pod.Name, m.pod.Namespace, m.pod.UID), c.spec.Name)
}

func (m *Machine) ensureImage(c *container, now time.Time, w *wake) []Action {
	i := &c.image
	if i.progress == underway {
		return nil
	}
	if now.Before(i.retryAt) {
		w.at(i.retryAt)
		m.showPullBackOff(c, now, w)
		return nil
	}
	i.progress = underway
	return []Action{{Kind: EnsureImage, Container: c.spec.Name}}
}

// showPullBackOff replaces ErrImagePull by ImagePullBackOff once the former has been seen.
func (m *Machine) showPullBackOff(c *container, now time.Time, w *wake) {
	i := &c.image
	if i.backOff || i.reason != "ErrImagePull" {
		return
	}
	if shown := i.failedAt.Add(errPullShown); now.Before(shown) {
		w.at(shown)
		return
	}
	i.backOff, i.reason = true, "ImagePullBackOff"
	i.message = fmt.Sprintf("Back-off pulling image %q: ErrImagePull: %s", c.spec.Image, i.message)
	m.record(v1.EventTypeNormal, "BackOff", fmt.Sprintf("Back-off pulling image %q", c.spec.Image), c.spec.Name)
	m.record(v1.EventTypeWarning, "Failed", "Error: ImagePullBackOff", c.spec.Name)
}

// removeOld forgets all but the last ended run of each container.
func (m *Machine) removeOld() (out []Action) {
	for _, c := range m.containers {
		for len(c.oldRuns) > 1 {
			out = append(out, Action{Kind: RemoveContainer, Container: c.spec.Name, ID: c.oldRuns[0]})
			c.oldRuns = c.oldRuns[1:]
		}
	}
	return out
}
