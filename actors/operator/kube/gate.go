package kube

import "time"

// Timings bounds the passes of one manifest.
type Timings struct {
	// Debounce is the window behind the start of a pass in which further wakes are gathered.
	Debounce time.Duration
	// Fallback is how long a manifest rests without a pass when nothing changes.
	Fallback time.Duration
	// RetryFirst and RetryLast bound the doubling wait after failed passes.
	RetryFirst, RetryLast time.Duration
	// RetryFloor is the shortest wait after a failed pass even when changes keep coming.
	RetryFloor time.Duration
	// Conflicts is how many conflicts in a row count as one failure.
	Conflicts int
}

// DefaultTimings are the product's.
var DefaultTimings = Timings{
	Debounce: 50 * time.Millisecond, Fallback: 30 * time.Second,
	RetryFirst: time.Second, RetryLast: time.Minute, RetryFloor: time.Second,
	Conflicts: 5,
}

// outcome is how a pass ended.
type outcome int

// Outcomes. New ones go at the end.
const (
	// succeeded is a pass without error.
	succeeded outcome = iota
	// failed is a pass with an error.
	failed
	// conflicted is a pass that lost a race with another writer.
	conflicted
	// paused is a pass that the breaker or an outage cut off, which says nothing about the pass; they say when the next may begin.
	paused
)

// gate decides when passes of one manifest run. It is pure: events come in with the time, due says when the next pass is due. At
// most one pass runs and at most one is pending, and there is one requeue slot.
type gate struct {
	timings Timings
	// jitter spreads the fallback and the retries of many manifests; between 0 and 1.
	jitter float64

	running, pending bool
	// began and ended are the last pass's; due is when the next one is.
	began, ended, due time.Time
	failures          int
	conflicts         int
}

// newGate makes a gate whose first pass is due at once.
func newGate(t Timings, jitter float64, now time.Time) *gate {
	return &gate{timings: t, jitter: jitter, due: now}
}

// wake notes a change.
func (g *gate) wake(now time.Time) {
	if g.running {
		g.pending = true
		return
	}
	g.soonest(g.earliest(now))
}

// isDue tells whether a pass may begin.
func (g *gate) isDue(now time.Time) bool { return !g.running && !now.Before(g.due) }

// hold puts the pass that is due off.
func (g *gate) hold(wait time.Duration, now time.Time) {
	if wait > 0 {
		g.due = now.Add(wait)
	}
}

// begin starts the pass that is due; false when none is.
func (g *gate) begin(now time.Time) bool {
	if !g.isDue(now) {
		return false
	}
	g.running, g.pending, g.began = true, false, now
	return true
}

// end notes how the pass ended and what it asks for: after is the requeue wish, zero for none.
func (g *gate) end(now time.Time, how outcome, after time.Duration) {
	g.running, g.ended = false, now
	switch how {
	case succeeded:
		g.failures, g.conflicts = 0, 0
		g.due = now.Add(g.spread(g.timings.Fallback))
		if after > 0 {
			g.soonest(now.Add(after))
		}
	case conflicted:
		g.conflict(now)
	case paused:
		g.due = now
	default:
		g.fail(now)
	}
	if g.pending {
		g.pending = false
		g.soonest(g.earliest(now))
	}
}

// conflict runs the pass again soon, and treats too many in a row as a failure.
func (g *gate) conflict(now time.Time) {
	if g.conflicts++; g.conflicts >= g.timings.Conflicts {
		g.conflicts = 0
		g.fail(now)
		return
	}
	g.due = g.earliest(now)
}

func (g *gate) fail(now time.Time) {
	wait := g.timings.RetryFirst
	for i := 0; i < g.failures && wait < g.timings.RetryLast; i++ {
		wait *= 2
	}
	g.failures++
	g.due = now.Add(g.spread(min(wait, g.timings.RetryLast)))
}

// earliest is when a wake may start a pass: after the debounce window, and not hot on the heels of a failure.
func (g *gate) earliest(now time.Time) time.Time {
	at := now
	if !g.began.IsZero() {
		at = later(at, g.began.Add(g.timings.Debounce))
	}
	if g.failures > 0 {
		at = later(at, g.ended.Add(g.timings.RetryFloor))
	}
	return at
}

func (g *gate) soonest(at time.Time) {
	if at.Before(g.due) {
		g.due = at
	}
}

// spread moves a wait by up to a fifth of it in either direction.
func (g *gate) spread(d time.Duration) time.Duration {
	return d + time.Duration((g.jitter-0.5)*0.4*float64(d))
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
