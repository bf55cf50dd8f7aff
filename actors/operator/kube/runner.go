package kube

import (
	"context"
	"errors"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/operator/engine"
)

// pauseJob, with the reason behind it, is the name of the job that waits a pause out.
const pauseJob = "HotLoop "

// runner runs the passes of a controller for the engine.
type runner struct {
	controller *Controller
	reconciler Reconciler
	deps       Deps
}

func (r *runner) hooks() engine.Hooks {
	hooks := engine.Hooks{Reconcile: r.reconcile, Paused: r.paused, Ended: r.ended, Stuck: r.stuck, Log: r.deps.Log}
	if recall := r.controller.Recall; recall != nil {
		hooks.Recall = func(key Key) (int, time.Time) { return recall(r.deps.Cache, key) }
	}
	return hooks
}

// reconcile runs one pass.
func (r *runner) reconcile(ctx context.Context, pass engine.Pass) engine.Result {
	if err := r.inject(ctx, pass.Key); err != nil {
		return resultOf(None(), err)
	}
	return resultOf(r.reconciler.Reconcile(withWriter(ctx, writerOf(r.controller.Name, pass.Key)), pass.Key))
}

// resultOf tells races with other writers and outages from failures.
func resultOf(action Action, err error) engine.Result {
	result := engine.Result{After: max(action.After, 0), Err: err}
	switch {
	case err == nil && action.Done:
		result.Outcome = engine.Gone
	case err == nil:
	case errors.Is(err, ErrPaused):
		result.Outcome = engine.Interrupted
	case isOutage(err):
		result.Outcome = engine.Unanswered
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err):
		result.Outcome = engine.Conflicted
	default:
		result.Outcome = engine.Failed
	}
	if err != nil && result.Outcome != engine.Failed {
		result.After = 0
	}
	return result
}

// isOutage tells that nobody answered, from every answer there is.
func isOutage(err error) bool {
	var unanswered *url.Error
	switch {
	case err == nil || errors.Is(err, ErrPaused):
		return false
	case errors.Is(err, cache.ErrSourceDown) || errors.Is(err, context.DeadlineExceeded):
		return true
	case errors.As(err, &unanswered):
		return true
	}
	return apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err)
}

// paused tells whether the breaker holds a reconciler back.
func (r *runner) paused(key Key) (engine.Pause, bool) {
	trip, paused := r.deps.Breaker.paused(writerOf(r.controller.Name, key))
	if !paused {
		return engine.Pause{}, false
	}
	return engine.Pause{Name: pauseJob + trip.Reason.String(), Until: trip.Until}, true
}

// ended counts a pass and tells on its object how it went.
func (r *runner) ended(report engine.Report) {
	r.deps.Metrics.count(r.controller.Name, report)
	switch report.Result.Outcome {
	case engine.Succeeded, engine.Gone:
		r.deps.Reporter.well(r.controller.Name, report.Key)
	case engine.Failed:
		r.deps.Reporter.failed(r.controller.Name, report.Key, report.Failures, report.Result.Err)
		r.deps.Log.Warn("a pass failed and is retried", "controller", r.controller.Name, "manifest", report.Key.String(),
			"failures", report.Failures, "cause", report.Result.Err)
	}
}

// stuck tells of a manifest of which no further pass begins.
func (r *runner) stuck(key Key, passes int) {
	r.deps.Reporter.stuck(r.controller.Name, key, passes)
}
