package engine

import (
	"math"
	"time"
)

const (
	// restSpread is by what part the rest between two passes is longer or shorter, so that those of many manifests do not meet.
	restSpread = 0.2
	// never is a wait that does not end.
	never = 100 * 365 * 24 * time.Hour
)

// refused is the Outcome of a pass that Start did not let begin; no hook sees it.
const refused Outcome = 255

// gate decides when passes of one manifest run. It is pure: events come in with the time, due says when the next pass is due. At
// most one pass runs and at most one is pending, and there is one requeue slot.
type gate struct {
	timings *Timings
	// place is the manifest's own between 0 and 1: it spreads the rests and the retries of many manifests.
	place float64

	running, pending bool
	// began and ended are the last pass's; due is when the next one is.
	began, ended, due time.Time
	// failures, conflicts and interruptions are those in a row.
	failures, conflicts, interruptions int
}

// newGate makes a gate whose first pass is due at once.
func newGate(t *Timings, place float64, now time.Time) *gate {
	return &gate{timings: t, place: place, due: now}
}

// recall makes a new gate go on from what is known of earlier passes.
func (g *gate) recall(failures int, next time.Time) {
	g.failures, g.due = failures, later(g.due, next)
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

// end notes how the pass ended and what it asks for.
func (g *gate) end(now time.Time, how Outcome, after time.Duration) {
	g.running, g.ended = false, now
	if how != Interrupted {
		g.interruptions = 0
	}
	switch how {
	case Succeeded, Gone:
		g.succeed(now, after)
	case Conflicted:
		g.conflict(now)
	case Interrupted:
		g.interrupt(now)
	case refused:
		g.due = now.Add(never)
	default:
		g.fail(now, after)
	}
	if g.pending {
		g.pending = false
		g.soonest(g.earliest(now))
	}
}

// succeed lets the manifest rest, until the time that the pass asked for if it did.
func (g *gate) succeed(now time.Time, after time.Duration) {
	g.failures, g.conflicts = 0, 0
	rest := never
	if g.timings.Resync > 0 {
		rest = g.spread(g.timings.Resync, restSpread)
	}
	if after > 0 {
		rest = min(rest, after)
	}
	g.due = now.Add(rest)
}

// conflict runs the pass again soon, and treats too many in a row as a failure.
func (g *gate) conflict(now time.Time) {
	if g.conflicts++; g.conflicts >= g.timings.Conflicts {
		g.conflicts = 0
		g.fail(now, 0)
		return
	}
	g.due = g.earliest(now)
}

// interrupt runs the pass again at once: whoever interrupted it says when it may begin. One that is interrupted over and over rests a little.
func (g *gate) interrupt(now time.Time) {
	g.due = now
	if g.interruptions++; g.interruptions > g.timings.Conflicts {
		g.due = now.Add(g.timings.RetryFloor)
	}
}

// fail runs the pass again after the back-off, or after the wait that it asked for.
func (g *gate) fail(now time.Time, after time.Duration) {
	if after <= 0 {
		after = g.spread(g.timings.Backoff.wait(g.failures), g.timings.Backoff.Jitter)
	}
	g.failures++
	g.due = now.Add(after)
}

// wait is how long to wait after a failure that has so many before it.
func (b *Backoff) wait(before int) time.Duration {
	wait := float64(b.Initial) * math.Pow(max(b.Factor, 1), float64(before))
	return time.Duration(min(wait, float64(b.Cap)))
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

// spread moves a wait by up to a part of it in either direction.
func (g *gate) spread(d time.Duration, part float64) time.Duration {
	return d + time.Duration((2*g.place-1)*part*float64(d))
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
