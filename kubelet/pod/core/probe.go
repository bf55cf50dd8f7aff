package core

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Outcome is how one probe ended.
type Outcome int

// The outcomes. Unknown means that the probe could not be made; it counts for nothing.
const (
	Unknown Outcome = iota
	Success
	Failure
)

// probe is the state of one probe of the current run.
type probe struct {
	underway bool
	next     time.Time
	last     Outcome
	inARow   int
	held     bool // the run is being restarted because of this probe
}

func (c *container) resetProbes() { c.probes = [numProbes]probe{} }

func (c *container) probeSpec(k ProbeKind) *v1.Probe {
	return [...]*v1.Probe{c.spec.StartupProbe, c.spec.ReadinessProbe, c.spec.LivenessProbe}[k]
}

// probing tells whether probe k is to be made in the present state of the run.
func (c *container) probing(k ProbeKind) bool {
	if !c.running() || c.hook != done || c.probeSpec(k) == nil || c.probes[k].held || c.stopped(k) {
		return false
	}
	if k == Startup {
		return !c.started
	}
	return c.startupPassed()
}

// stopped tells whether the run's ending makes probe k pointless: readiness goes on, as clients still come.
func (c *container) stopped(k ProbeKind) bool { return c.stop != nil && k != Readiness }

func (c *container) startupPassed() bool { return c.spec.StartupProbe == nil || c.started }

// dueProbes returns the probes to make now and when the next is due.
func (m *Machine) dueProbes(now time.Time, w *wake) (out []Action) {
	for _, c := range m.containers {
		for k := range numProbes {
			if !c.probing(k) {
				continue
			}
			p := &c.probes[k]
			if p.next.IsZero() {
				p.next = c.cur.StartedAt.Add(time.Duration(c.probeSpec(k).InitialDelaySeconds) * time.Second)
			}
			switch {
			case p.underway:
			case now.Before(p.next):
				w.at(p.next)
			default:
				p.underway = true
				out = append(out, Action{Kind: Probe, Container: c.spec.Name, ID: c.cur.ID, Probe: k})
			}
		}
	}
	return out
}

// ProbeDone says how a probe of the run id ended; output goes into the Event of a failure.
func (m *Machine) ProbeDone(name, id string, k ProbeKind, o Outcome, output string, now time.Time) {
	c := m.byName[name]
	if c == nil || c.cur == nil || c.cur.ID != id {
		return
	}
	p, spec := &c.probes[k], c.probeSpec(k)
	if spec == nil || !p.underway {
		return
	}
	p.underway = false
	p.next = now.Add(time.Duration(max(spec.PeriodSeconds, 1)) * time.Second)
	if o == Unknown {
		m.record(v1.EventTypeWarning, "ProbeError", fmt.Sprintf("%s probe errored: %s", k, output), name)
		return
	}
	if o != p.last {
		p.last, p.inARow = o, 0
	}
	p.inARow++
	if o == Failure {
		m.record(v1.EventTypeWarning, "Unhealthy", fmt.Sprintf("%s probe failed: %s", k, output), name)
	}
	m.judge(c, k, spec, now)
}

// judge draws the consequence of enough equal outcomes in a row.
func (m *Machine) judge(c *container, k ProbeKind, spec *v1.Probe, now time.Time) {
	p := &c.probes[k]
	passed := p.last == Success && p.inARow >= int(max(spec.SuccessThreshold, 1))
	failed := p.last == Failure && p.inARow >= int(max(spec.FailureThreshold, 1))
	switch {
	case k == Readiness && passed:
		c.ready = true
	case k == Readiness && failed:
		c.ready = false
	case k == Startup && passed:
		c.started = true
	case k != Readiness && failed && c.stop == nil:
		p.held = true
		m.record(v1.EventTypeNormal, "Killing", fmt.Sprintf("Container %s failed %s probe, will be restarted", c.spec.Name, lower(k)), c.spec.Name)
		m.endRun(c, m.probeGrace(spec), "", now)
	}
}

func lower(k ProbeKind) string { return [...]string{"startup", "readiness", "liveness"}[k] }

func (m *Machine) probeGrace(spec *v1.Probe) time.Duration {
	if s := spec.TerminationGracePeriodSeconds; s != nil {
		return max(time.Duration(*s)*time.Second, minGrace)
	}
	return m.grace()
}
