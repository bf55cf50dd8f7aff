package operator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// finalizerName is the finalizer by which operators with a Finalize method hold their manifests.
const finalizerName = "nodeactor.io/finalize"

// step is what a pass has to do. New ones go at the end.
type step uint8

const (
	// stepNothing: what is left of the manifest is held by finalizers that are not the operator's.
	stepNothing step = iota
	// stepHold: put the operator's finalizer on it, then see again.
	stepHold
	// stepReconcile: call Reconcile.
	stepReconcile
	// stepFinalize: call Finalize.
	stepFinalize
)

// plan decides what a pass has to do. The finalizer comes before the first pass, so that whatever a pass did is undone one day. An
// operator without a Finalize method is asked to reconcile a deleted manifest that other finalizers hold: they may be its own.
func (r *Runner[S]) plan(rec Record) step {
	held := rec.hasFinalizer(finalizerName)
	switch {
	case rec.Deleting() && r.finalizer != nil && held:
		return stepFinalize
	case rec.Deleting() && (r.finalizer != nil || len(rec.Finalizers) == 0):
		return stepNothing
	case !rec.Deleting() && r.finalizer != nil && !held:
		return stepHold
	}
	return stepReconcile
}

// result is how the operator's code ended.
type result struct {
	action Action
	err    error
	// state is the state as the code left it; nil when it did not return.
	state *State
	// finalized is set when the code was Finalize.
	finalized bool
	// interrupted is set when its error says nothing of the manifest.
	interrupted bool
}

// decide says what is to be stored of a pass and when the next one is.
func decide(rec Record, res result, backoff BackoffPolicy, env Env) (Change, Outcome) {
	now := env.Now()
	wait, again, err := res.action.wait(now)
	if res.err == nil {
		res.err = err
	}
	switch {
	case res.interrupted:
		return Change{}, Outcome{Verdict: Interrupted, Err: res.err}
	case res.err != nil:
		return failed(rec, res.err, backoff, env, now)
	}
	out := Outcome{Verdict: Succeeded}
	if again {
		out.After = wait
	}
	return succeeded(rec, res, env), out
}

// succeeded is what is stored of a pass that ended well.
func succeeded(rec Record, res result, env Env) Change {
	status := Status{
		Phase: PhaseReady, ObservedGeneration: rec.Generation, ObservedHash: rec.Hash,
		Conditions: res.state.conditions, Value: res.state.value,
	}
	if rec.Deleting() {
		status.Phase = PhaseDeleting
	}
	change := change(rec, status, env)
	change.AddFinalizers = without(res.state.finalizers, rec.Finalizers)
	change.RemoveFinalizers = without(rec.Finalizers, res.state.finalizers)
	if res.finalized {
		change.RemoveFinalizers = append(change.RemoveFinalizers, finalizerName)
	}
	return change
}

// failed is what is stored of a pass that failed: nothing of what it did, and when it is tried again.
func failed(rec Record, cause error, backoff BackoffPolicy, env Env, now time.Time) (Change, Outcome) {
	status := rec.Status
	status.ObservedGeneration, status.ObservedHash = rec.Generation, rec.Hash
	status.Attempts++
	wait := backoff.Wait(status.Attempts, env.Jitter)
	status.Phase, status.LastError, status.NextTry = PhaseRetrying, shortened(cause), wall(now.Add(wait))
	if rec.Deleting() {
		status.Phase = PhaseDeleting
	}
	return change(rec, status, env), Outcome{Verdict: Failed, After: wait, Attempts: status.Attempts, Err: cause}
}

// change is the change that makes a status of a record, none when both say the same.
func change(rec Record, status Status, env Env) Change {
	if status.says(rec.Status) {
		return Change{}
	}
	if env.Fence.Epoch != 0 {
		status.Holder, status.Epoch = holderName(env.Fence.Holder), env.Fence.Epoch
	}
	return Change{Status: &status}
}

// shortened is an error as it is stored.
func shortened(err error) string {
	text := strings.ToValidUTF8(err.Error(), "?")
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + " …"
	}
	return text
}

// text is all of a manifest, to tell whether a pass changed it. It is taken before the pass, which may change what its copy refers to.
func (m Manifest[S]) text() ([]byte, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("cannot serialise the manifest: %w", err)
	}
	return text, nil
}

// unchanged refuses what a pass must not change.
func unchanged[S Specification](before []byte, key Key, after Manifest[S]) error {
	if after.Key() != key {
		return fmt.Errorf("cannot keep what the pass did: it renamed the manifest from %s to %s: %w", key, after.Key(), ErrManifestChanged)
	}
	text, err := after.text()
	if err != nil || !bytes.Equal(text, before) {
		return fmt.Errorf("cannot keep what the pass did: it changed the specification or metadata: %w", errors.Join(ErrManifestChanged, err))
	}
	return nil
}

// without are the elements of a that are not in b.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

// Due is when the next pass of a manifest may begin, from its record alone: whoever takes it over does not begin hot. A new
// specification does not wait for what failed of the old one.
func (r *Runner[S]) Due(rec Record, now time.Time) time.Time {
	if rec.Hash != rec.Status.ObservedHash {
		return now
	}
	return due(rec.Status.NextTry, rec.Status.Phase == PhaseParked, r.cfg.Backoff, now)
}

// due is a stored time of the next try as it counts here and now: the clock of who stored it may have been ahead, and then no back-off takes
// longer than the longest.
func due(next time.Time, parked bool, backoff BackoffPolicy, now time.Time) time.Time {
	if !next.After(now) {
		return now
	}
	if latest := now.Add(backoff.longest()); next.After(latest) && !parked {
		return latest
	}
	return next
}
