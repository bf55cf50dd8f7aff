package engine

import (
	"context"
	"errors"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

// errNoResult is returned when a pass ended without a result, which its deadline or its stop does.
var errNoResult = errors.New("the pass did not come to an end")

// landed is what the job of a pass brings home.
type landed struct {
	pass   Pass
	result Result
}

// launch starts the job of a pass.
func (m *manifest) launch(ctx supervision.Context, now time.Time) {
	m.gate.begin(now)
	m.late, m.blind = 0, false
	f, failures := m.flight, m.gate.failures
	ctx.Go(supervision.Job{Name: passJob, Deadline: m.timeout(), Run: func(ctx context.Context, _ func()) (any, error) {
		return m.fly(ctx, f, failures), nil
	}})
}

// fly is a pass from its begin to its end, whatever becomes of its actor meanwhile.
func (e *Engine) fly(ctx context.Context, f *flight, failures int) landed {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	gains := e.board.enter(f, cancel)
	defer e.board.leave(f)
	pass := Pass{Key: f.key, Failures: failures}
	if e.hooks.Start != nil {
		token, ok := e.hooks.Start(f.key)
		e.board.admit(f, ok, gains)
		if !ok {
			return landed{pass, Result{Outcome: e.unless(f.key, refused)}}
		}
		defer e.hooks.Done(f.key, token)
		pass.Token = token
	}
	return landed{pass, e.pass(ctx, f, pass)}
}

// pass runs one pass on a state that holds everything written before it.
func (e *Engine) pass(ctx context.Context, f *flight, pass Pass) (result Result) {
	revision, err := e.source.Sync(ctx)
	switch {
	case err != nil:
		result = Result{Outcome: Unanswered, Err: err}
	default:
		e.board.saw(f.key, revision)
		if result.Outcome = e.unless(f.key, Succeeded); result.Outcome != Gone {
			result = e.hooks.Reconcile(ctx, pass)
		}
	}
	if e.board.wasCancelled(f) && result.Outcome != Succeeded && result.Outcome != Gone {
		result.Outcome = Interrupted
	}
	return result
}

// unless is the outcome of a manifest that exists; Gone for one that does not.
func (e *Engine) unless(key Key, outcome Outcome) Outcome {
	if !e.source.Has(key) {
		return Gone
	}
	return outcome
}

// finish notes the end of a pass.
func (m *manifest) finish(done supervision.JobDone, now time.Time) {
	home, ok := done.Value.(landed)
	if !ok {
		home = landed{Pass{Key: m.key, Failures: m.gate.failures}, Result{Outcome: Failed, Err: errors.Join(errNoResult, done.Err)}}
	}
	result := m.judged(home.result, now)
	m.gate.pending = m.gate.pending && (m.blind || !m.board.stale(m.key, m.late))
	began, woken := m.gate.began, m.gate.pending
	m.gate.end(now, result.Outcome, result.After)
	m.flight = nil
	m.gone = result.Outcome == Gone && !woken
	m.refused = result.Outcome == refused && !woken
	if m.hooks.Ended != nil && result.Outcome != refused {
		m.hooks.Ended(Report{Pass: home.pass, Result: result, Failures: m.gate.failures, Began: began, Ended: now})
	}
}

// judged settles what is still open about a result: whether nobody answered anybody, and whether it asks for the impossible.
func (m *manifest) judged(r Result, now time.Time) Result {
	if r.Outcome == Succeeded && r.After < 0 {
		r = Result{Outcome: Failed, Err: errors.Join(ErrRequeuePast, r.Err)}
	}
	switch r.Outcome {
	case Unanswered:
		r.Outcome = Failed
		if m.noteOutage(r.Err, now) {
			r.Outcome = Interrupted // nobody's fault, and the outage says when the next pass may begin
		}
	case Interrupted, refused:
	default:
		m.noteOutage(nil, now)
	}
	return r
}

// noteOutage tells whether a pass failed only because nobody answers anybody; the cause is nil for one that was answered.
func (m *manifest) noteOutage(cause error, now time.Time) bool {
	away, changed := m.outage.note(now, m.key, m.place, cause == nil)
	switch {
	case changed && away:
		m.hooks.Log.Warn("nobody answers this controller, it tries once a second", "controller", m.name, "cause", cause)
	case changed:
		m.hooks.Log.Info("this controller is answered again", "controller", m.name)
	}
	return away
}

// sleeping is a job that waits.
func sleeping(clock supervision.Clock, wait time.Duration) func(context.Context, func()) (any, error) {
	return func(ctx context.Context, _ func()) (any, error) { return nil, clock.Sleep(ctx, wait) }
}
