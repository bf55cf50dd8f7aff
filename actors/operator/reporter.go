package operator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nodeactor/nodeactor/actors/operator/engine"
	"github.com/nodeactor/nodeactor/cluster/lease"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// Bounds of the reporter.
const (
	// reportTimeout bounds the write of one batch of reports.
	reportTimeout = 30 * time.Second
	// maxReports is how many manifests may wait to be reported; of more the report is lost, the fault is counted all the same.
	maxReports = 4096
)

// report is what has to be stored of a manifest whose actor failed, and cannot say so itself.
type report struct {
	key Key
	// hung is set when a pass was given up, parked when the pool leaves the manifest alone.
	hung, parked bool
	err          error
	next         time.Time
}

// reports are those that wait, the last of each manifest.
type reports struct {
	mu      sync.Mutex
	waiting map[Key]report
}

// put adds a report; the next one of the same manifest goes on from it.
func (r *reports) put(rep report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting == nil {
		r.waiting = map[Key]report{}
	}
	before, ok := r.waiting[rep.key]
	if !ok && len(r.waiting) >= maxReports {
		return
	}
	rep.hung = rep.hung || before.hung
	if rep.err == nil {
		rep.err = before.err
	}
	r.waiting[rep.key] = rep
}

func (r *reports) take() []report {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]report, 0, len(r.waiting))
	for _, key := range sortedKeys(r.waiting) {
		all = append(all, r.waiting[key])
	}
	clear(r.waiting)
	return all
}

// fault implements engine.Hooks. A pass that panicked has stored that; what only the supervisor knows is told by the reporter.
func (h *host) fault(key engine.Key, c supervision.Change) {
	if c.Fault == nil || c.To != core.BackingOff && c.To != core.Parked {
		return
	}
	h.tally.faults.Add(1)
	hung, parked := c.Fault.Kind == supervision.Hang, c.To == core.Parked
	if !hung && !parked {
		return
	}
	if hung {
		h.giveUp(Key(key))
	}
	h.hand(report{key: Key(key), hung: hung, parked: parked, err: c.Fault.Err, next: c.NextTry})
}

// stuck implements engine.Hooks.
func (h *host) stuck(key engine.Key, passes int) {
	h.hand(report{key: Key(key), parked: true, err: errStuck(passes)})
}

// hand gives a report to the reporter.
func (h *host) hand(rep report) {
	h.reports.put(rep)
	if nudge := h.nudge.Load(); nudge != nil {
		(*nudge)()
	}
}

// errStuck says why a manifest has no more passes.
func errStuck(passes int) error {
	return fmt.Errorf("%d passes have not returned: no further one begins until one does, the manifest changes or the process is started anew", passes)
}

// reporter stores what manifests cannot say themselves.
type reporter struct {
	host *host
	busy bool
}

func (h *host) reporterSpec() supervision.Spec {
	spec := catalog.Row("reporter")
	spec.Start = func() supervision.Handler { return &reporter{host: h} }
	return spec
}

// Receive implements supervision.Handler.
func (r *reporter) Receive(ctx supervision.Context, msg any) error {
	switch msg := msg.(type) {
	case supervision.Started:
		system, self := ctx.System(), ctx.Self()
		nudge := func() { system.Send(self, news{}) }
		r.host.nudge.Store(&nudge)
	case supervision.JobDone:
		if r.busy = false; msg.Err != nil {
			ctx.Log().Warn("cannot store how manifests do", "kind", r.host.kind, "cause", msg.Err)
		}
	}
	if r.busy {
		return nil
	}
	if all := r.host.reports.take(); len(all) > 0 {
		r.busy = true
		ctx.Go(supervision.Job{Name: "report", Deadline: reportTimeout, Run: func(ctx context.Context, _ func()) (any, error) {
			return nil, r.host.report(ctx, all)
		}})
	}
	return nil
}

// report stores reports, each under the lease of its manifest. One whose lease is elsewhere by now is nobody's business here.
func (h *host) report(ctx context.Context, all []report) error {
	var errs []error
	for _, rep := range all {
		fence, release, ok := h.borrow(rep.key)
		if !ok {
			continue
		}
		if err := h.storeReport(ctx, rep, fence); err != nil && !errors.Is(err, ErrFenced) && !errors.Is(err, ErrNotFound) {
			errs = append(errs, fmt.Errorf("%s: %w", rep.key, err))
		}
		release()
	}
	return errors.Join(errs...)
}

// borrow gives the fence of a manifest: that of the pass that hangs, or one of its own. The lease of one that hangs is released then: whatever
// the pass may still do one day is refused, and the next pass has another epoch.
func (h *host) borrow(key Key) (fence lease.Fence, release func(), ok bool) {
	if f, ok := h.flying(key); ok {
		return f.fence, func() { h.abandon(key, f) }, true
	}
	if fence, ok = h.session.Start(h.id(key).Key()); !ok {
		return fence, nil, false
	}
	return fence, func() { h.session.Done(fence) }, true
}

// abandon gives up a pass that hangs.
func (h *host) abandon(key Key, f flight) {
	if f.lost {
		h.landed(key, f.fence)
		h.session.Abandon(f.fence)
	}
}

// storeReport stores one report.
func (h *host) storeReport(ctx context.Context, rep report, fence lease.Fence) error {
	rec, revision, err := readRecord(ctx, h.store, h.id(rep.key))
	if err != nil {
		return err
	}
	w := &writer{host: h, rec: rec, revision: revision, fence: fence}
	change := rep.change(rec, w.env())
	if change.empty() {
		return nil
	}
	_, err = w.commit(ctx, change)
	return err
}

// change is what a report makes of a status.
func (r report) change(rec Record, env Env) Change {
	status := rec.Status
	status.ObservedGeneration, status.ObservedHash = rec.Generation, rec.Hash
	switch {
	case r.hung:
		status.Attempts++
		status.LastError = shortened(fmt.Errorf("the pass did not end in time and was given up: %w", r.err))
	case r.next.IsZero():
		status.LastError = shortened(r.err)
	}
	status.Phase = PhaseRetrying
	if r.parked {
		status.Phase = PhaseParked
	}
	if rec.Deleting() && !r.parked {
		status.Phase = PhaseDeleting
	}
	status.NextTry = wall(r.next)
	return change(rec, status, env)
}
