package operator

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/nodeactor/nodeactor/cluster/lease"
	"github.com/nodeactor/nodeactor/supervision"
)

// Env is what a pass needs of the place it runs in: standalone, inside a node, or under test.
type Env struct {
	// Now is the time, Sleep waits by the same clock; without it Sleep is the machine's.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration) error
	// Jitter in [0,1) is the manifest's own place within the jitter of waits.
	Jitter float64
	// Fence is the lease under which the pass runs; zero where there are no leases.
	Fence lease.Fence
	// Check asks whether the lease still holds; nil where there are no leases. ErrFenced is returned when it does not.
	Check func(ctx context.Context) error
	// Reader is what Get and List read from; nil when the operator declares no reads.
	Reader Reader
	// Once remembers which manifests were finalized; nil remembers none.
	Once *Once
	// Commit stores a change of the manifest under the fence, on top of what others have changed of it meanwhile, and returns the
	// record as it is then. ErrNotFound is returned when the manifest is gone, ErrFenced when the lease is lost, ErrTooLarge when it does not
	// fit. Its context is bounded, and does not end with the pass.
	Commit func(ctx context.Context, c Change) (Record, error)
}

// Outcome is what became of a pass.
type Outcome struct {
	// Verdict is how it ended.
	Verdict Verdict
	// After is the wait until the next pass: what a pass that ended well asked for, zero for nothing, or the back-off of one that failed.
	After time.Duration
	// Attempts is how many passes have failed in a row.
	Attempts int
	// Err is why it did not end well.
	Err error
}

// Verdict is how a pass ended. New ones go at the end.
type Verdict uint8

// The verdicts.
const (
	// Succeeded: it ended well.
	Succeeded Verdict = iota + 1
	// Failed: it is to be run again after the back-off, and the failure is stored.
	Failed
	// Interrupted: it was called off, or its lease was lost. That is no failure of the manifest: nothing is stored, and it is to be run
	// again when it may be.
	Interrupted
	// Gone: the manifest is no more.
	Gone
	// Unanswered: the store did not answer, so that nobody knows what is stored.
	Unanswered
)

// Runner runs passes of an operator, one manifest and one pass at a time. It decides what a pass comes to, and keeps nothing between passes.
type Runner[S Specification] struct {
	kind      string
	op        Operator[S]
	finalizer Finalizer[S]
	cfg       OperatorConfig
	reads     map[string]bool
}

// NewRunner checks an operator and its configuration. ErrSpecification is returned when S cannot be a specification. An operator that is nil,
// a nil Func or pointer among them, is refused.
func NewRunner[S Specification](op Operator[S], cfg OperatorConfig) (*Runner[S], error) {
	r, err := newRunner(op, cfg)
	if err == nil && hollow(op) {
		err = errHollow(r.kind, op)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// hollow tells whether an operator has a type and no value: its first pass could only panic.
func hollow(op any) bool {
	v := reflect.ValueOf(op)
	return (v.Kind() == reflect.Func || v.Kind() == reflect.Pointer) && v.IsNil()
}

// errHollow says that an operator has a type and no value.
func errHollow(kind string, op any) error {
	return fmt.Errorf("cannot run the operator of %s: it is a nil %T; give it a function or value that reconciles", kind, op)
}

// newRunner is NewRunner for operators that need not be there, because nobody may execute them.
func newRunner[S Specification](op Operator[S], cfg OperatorConfig) (*Runner[S], error) {
	if err := checkSpecification[S](); err != nil {
		return nil, err
	}
	r := &Runner[S]{kind: kindOf[S](), op: op, cfg: cfg.withDefaults(), reads: map[string]bool{}}
	if op == nil {
		return nil, fmt.Errorf("cannot run the operator of %s: it is nil", r.kind)
	}
	if err := r.cfg.check(); err != nil {
		return nil, fmt.Errorf("cannot run the operator of %s: %w", r.kind, err)
	}
	for _, read := range cfg.Reads {
		if read.kind == "" || r.reads[read.kind] {
			return nil, fmt.Errorf("cannot run the operator of %s: its reads name %q twice, or no kind", r.kind, read.kind)
		}
		r.reads[read.kind] = true
	}
	r.finalizer, _ = op.(Finalizer[S])
	return r, nil
}

// Kind is the kind of the operator's manifests.
func (r *Runner[S]) Kind() string { return r.kind }

// Config is the configuration, defaults filled in.
func (r *Runner[S]) Config() OperatorConfig { return r.cfg }

// Pass runs one pass of a manifest: what it needs before, the operator's own code, and the write of what it came to. A panic of the
// operator's code is stored as a failure and goes on.
func (r *Runner[S]) Pass(ctx context.Context, rec Record, env Env) Outcome {
	step := r.plan(rec)
	if step == stepHold {
		held, err := commit(ctx, env, Change{AddFinalizers: []string{finalizerName}})
		if err != nil {
			return unstored(err)
		}
		rec, step = held, r.plan(held)
	}
	if step == stepNothing {
		return Outcome{Verdict: Succeeded}
	}
	return r.run(ctx, step, rec, env)
}

// run calls the operator's code and stores what it comes to.
func (r *Runner[S]) run(ctx context.Context, step step, rec Record, env Env) (out Outcome) {
	returned := false
	defer func() {
		if returned {
			return
		}
		v := recover()
		r.settle(ctx, rec, env, result{err: broken(v)})
		if v != nil {
			panic(v) // within the deferred call, so that the stack of its cause is still there for whoever contains it
		}
	}()
	res := r.called(context.WithValue(ctx, passKey{}, &running{env, r.reads}), step, rec, env)
	returned = true
	return r.settle(ctx, rec, env, res)
}

// broken says how a pass ended that did not return, by what was recovered of it.
func broken(v any) error {
	if v == nil {
		return errors.New("the pass ended its goroutine") // by runtime.Goexit: a test's FailNow calls it, for instance
	}
	return fmt.Errorf("the pass panicked: %v", v)
}

// called lets the operator's own code have a copy of the manifest, and sees what it did to it.
func (r *Runner[S]) called(ctx context.Context, step step, rec Record, env Env) result {
	manifest, before, err := copyOf[S](rec)
	if err != nil {
		return result{err: err}
	}
	state := &ManifestState[S]{Manifest: manifest, State: newState(rec, env.Fence, env.Now())}
	res := r.call(ctx, step, state, env.Once)
	res.err = tell(res.err)
	if res.err == nil {
		res.err = unchanged(before, rec.Key(), state.Manifest)
	}
	res.err = r.outOfTime(ctx, res.err)
	res.state = &state.State
	return res
}

// outOfTime says of an error that it came when the pass had had its time: a canceled context alone does not tell that.
func (r *Runner[S]) outOfTime(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("the pass had no more time after %s: %w", r.cfg.ReconcileTimeout, err)
}

// copyOf is a manifest for a pass, and all of it as text.
func copyOf[S Specification](rec Record) (m Manifest[S], text []byte, err error) {
	if m, err = manifestOf[S](rec); err != nil {
		return m, nil, err
	}
	text, err = m.text()
	return m, text, err
}

// call is the operator's own code.
func (r *Runner[S]) call(ctx context.Context, step step, state *ManifestState[S], once *Once) (res result) {
	if step != stepFinalize {
		res.action, res.err = r.op.Reconcile(ctx, state)
		return res
	}
	uid := state.Manifest.UID
	res.finalized = true
	if once.has(uid) {
		return res
	}
	if res.err = r.finalizer.Finalize(ctx, state); res.err == nil {
		once.add(uid)
	}
	return res
}

// settle stores what a pass came to.
func (r *Runner[S]) settle(ctx context.Context, rec Record, env Env, res result) Outcome {
	res.interrupted = interruptedBy(ctx, env, res.err)
	change, out := decide(rec, res, r.cfg.Backoff, env)
	if change.empty() {
		return out
	}
	after, err := commit(ctx, env, change)
	switch {
	case errors.Is(err, ErrTooLarge) && res.err == nil:
		res.err = err
		return r.settle(ctx, rec, env, res)
	case err != nil:
		return unstored(err)
	}
	if res.finalized && out.Verdict == Succeeded {
		env.Once.forget(rec.UID)
	}
	if after.Deleting() && len(after.Finalizers) == 0 {
		out.Verdict = Gone
	}
	return out
}

// interruptedBy tells whether an error says nothing of the manifest: the pass was called off, or its lease is really lost.
func interruptedBy(ctx context.Context, env Env, err error) bool {
	switch {
	case err == nil:
		return false
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return true
	case !errors.Is(err, ErrFenced):
		return false
	}
	return supervision.CheckFence(ctx) != nil || env.Check != nil && env.Check(ctx) != nil
}

// commit stores a change in a time of its own: what a pass came to is worth storing also when the pass has had its time, and whether it may
// be is for the fence to say.
func commit(ctx context.Context, env Env, c Change) (Record, error) {
	if supervision.CheckFence(ctx) != nil {
		return Record{}, ErrFenced
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	return env.Commit(ctx, c)
}

// unstored is the outcome of a pass that could not be stored.
func unstored(err error) Outcome {
	switch {
	case errors.Is(err, ErrNotFound):
		return Outcome{Verdict: Gone}
	case errors.Is(err, ErrFenced):
		return Outcome{Verdict: Interrupted, Err: err}
	}
	return Outcome{Verdict: Unanswered, Err: err}
}
