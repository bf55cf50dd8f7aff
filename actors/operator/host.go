package operator

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nodeactor/nodeactor/actors/operator/engine"
	"github.com/nodeactor/nodeactor/actors/operator/session"
	"github.com/nodeactor/nodeactor/actors/operator/storage"
	"github.com/nodeactor/nodeactor/cluster/lease"
)

// host runs the passes of one kind in one process: it gives the engine its hooks, and a pass what it needs of the store and the session.
type host struct {
	*plane
	log     *slog.Logger
	session *session.Session
	index   *index
	engine  *engine.Engine
	loops   *loops
	once    Once
	tally   tally
	// reports are what the reporter has to store, nudge tells it so.
	reports reports
	nudge   atomic.Pointer[func()]

	mu sync.Mutex
	// running are the passes that have not returned.
	running map[Key]flight
	// refused are manifests of which the session has refused a pass, or is about to answer.
	refused map[Key]struct{}
	// recalled are manifests whose actor has just begun and is to wait for its next try.
	recalled map[Key]struct{}
}

// errNotYet is the failure of a pass that was woken before the next try was due, by its actor's own beginning.
var errNotYet = errors.New("the next try is not due yet")

// flight is a pass that has not returned; lost is set when it was given up.
type flight struct {
	fence lease.Fence
	lost  bool
}

// tally counts passes by how they ended.
type tally struct{ succeeded, failed, interrupted, faults, writes atomic.Uint64 }

func newHost(p *plane, s *session.Session) *host {
	h := &host{plane: p, log: p.opts.log.With("kind", p.kind), session: s, running: map[Key]flight{}, refused: map[Key]struct{}{}, recalled: map[Key]struct{}{}}
	h.loops = newLoops(p.kind, p.opts.clock.Now)
	h.index = newIndex(p.kind, p.cfg.Reads, h.loops.woken, h.forget, h.misread)
	h.engine = engine.New(p.kind, h.index, h.hooks(), timings(p.cfg), engine.Limits{Concurrency: p.cfg.Concurrency, Timeout: p.cfg.ReconcileTimeout})
	s.Listen(p.kind, session.Listener{
		Gained: func(f lease.Fence) { h.forManifest(f, func(key engine.Key) { h.gained(f, key) }) },
		Cancel: func(f lease.Fence, why lease.Reason) {
			h.forManifest(f, func(key engine.Key) { h.engine.Cancel(key, fmt.Errorf("the lease is %s: %w", why, ErrFenced)) })
		},
	})
	return h
}

// misread says that it is not known whom a change of what is read concerns.
func (h *host) misread(id storage.ID, err error) {
	h.log.Error("cannot tell whom a change concerns", "object", id.Key(), "cause", err)
}

// forManifest calls f with the manifest of a fence.
func (h *host) forManifest(f lease.Fence, do func(engine.Key)) {
	if id, ok := storage.ParseKey(f.Manifest); ok {
		do(engine.Key{Namespace: id.Namespace, Name: id.Name})
	}
}

// timings are the engine's, as the operator wants them.
func timings(cfg OperatorConfig) engine.Timings {
	t := engine.DefaultTimings
	t.Resync = cfg.Resync
	t.Backoff = engine.Backoff{Initial: cfg.Backoff.Initial, Factor: cfg.Backoff.Factor, Cap: cfg.Backoff.Cap, Jitter: cfg.Backoff.Jitter}
	t.RetryFloor = min(t.RetryFloor, cfg.Backoff.Initial)
	return t
}

func (h *host) hooks() engine.Hooks {
	return engine.Hooks{
		Reconcile: h.reconcile, Start: h.start, Done: h.done, Recall: h.recall, Paused: h.loops.paused, Ended: h.ended, Fault: h.fault, Stuck: h.stuck, Log: h.log,
	}
}

func (h *host) id(key Key) storage.ID {
	return storage.ID{Kind: h.kind, Namespace: key.Namespace, Name: key.Name}
}

// start asks the session whether a pass may begin. The manifest counts as refused before it answers, so that a gain is not missed.
func (h *host) start(key engine.Key) (any, bool) {
	h.mu.Lock()
	h.refused[Key(key)] = struct{}{}
	h.mu.Unlock()
	fence, ok := h.session.Start(h.id(Key(key)).Key())
	if !ok {
		return nil, false
	}
	h.index.begun(Key(key), fence.Epoch)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.refused, Key(key))
	h.running[Key(key)] = flight{fence: fence}
	return fence, true
}

// gained brings a pass about that was refused, or that the manifest needs under a new lease though it had one under an older: somebody else may
// have left it half done. The first pass of all is the index's to bring about.
func (h *host) gained(f lease.Fence, key engine.Key) {
	h.mu.Lock()
	_, refused := h.refused[Key(key)]
	delete(h.refused, Key(key))
	h.mu.Unlock()
	if last := h.index.lastBegun(Key(key)); refused || last != 0 && last != f.Epoch {
		h.engine.Gained(key)
	}
}

// done tells the session that a pass has really ended.
func (h *host) done(key engine.Key, token any) {
	fence := token.(lease.Fence)
	h.landed(Key(key), fence)
	h.session.Done(fence)
}

// landed drops a pass that has returned, or is not waited for any more.
func (h *host) landed(key Key, fence lease.Fence) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running[key].fence == fence {
		delete(h.running, key)
	}
}

// forget drops what is kept of a manifest that is gone.
func (h *host) forget(key Key) {
	h.loops.forgive(key)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.refused, key)
	delete(h.recalled, key)
}

// flying gives the pass of a manifest that has not returned.
func (h *host) flying(key Key) (flight, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f, ok := h.running[key]
	return f, ok
}

// giveUp notes that a pass hangs.
func (h *host) giveUp(key Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f, ok := h.running[key]; ok {
		f.lost = true
		h.running[key] = f
	}
}

// recall is the past with which the actor of a manifest begins, whoever ran its last passes.
func (h *host) recall(key engine.Key) (failures int, next time.Time) {
	p, ok := h.index.recall(Key(key))
	if !ok || p.other {
		return p.attempts, time.Time{}
	}
	h.mu.Lock()
	h.recalled[Key(key)] = struct{}{}
	h.mu.Unlock()
	return p.attempts, due(p.next, p.parked, h.cfg.Backoff, h.opts.clock.Now())
}

// notYet is how long the first pass of an actor, or under a lease, has to wait all the same: whatever woke it was its own beginning.
func (h *host) notYet(rec Record, fence lease.Fence) (wait time.Duration) {
	h.mu.Lock()
	_, first := h.recalled[rec.Key()]
	delete(h.recalled, rec.Key())
	h.mu.Unlock()
	if !first && rec.Status.Epoch == fence.Epoch {
		return 0
	}
	now := h.opts.clock.Now()
	return h.runner.Due(rec, now).Sub(now)
}

// reconcile runs a pass on what is stored now.
func (h *host) reconcile(ctx context.Context, pass engine.Pass) engine.Result {
	key := Key(pass.Key)
	rec, revision, err := readRecord(ctx, h.store, h.id(key))
	switch {
	case errors.Is(err, ErrNotFound):
		return engine.Result{Outcome: engine.Gone}
	case errors.Is(err, errRecord):
		return engine.Result{Outcome: engine.Failed, Err: err} // it cannot be said on the manifest, which is not there to be written
	case err != nil:
		return engine.Result{Outcome: engine.Unanswered, Err: err}
	}
	fence := pass.Token.(lease.Fence)
	if wait := h.notYet(rec, fence); wait > 0 {
		return engine.Result{Outcome: engine.Failed, After: wait, Err: errNotYet}
	}
	w := &writer{host: h, rec: rec, revision: revision, fence: fence}
	return resultOf(h.runner.Pass(ctx, rec, w.env()))
}

// resultOf is an outcome as the engine takes it.
func resultOf(o Outcome) engine.Result {
	r := engine.Result{After: o.After, Err: o.Err}
	switch o.Verdict {
	case Succeeded:
		r.Outcome = engine.Succeeded
	case Failed:
		r.Outcome = engine.Failed
	case Gone:
		r.Outcome = engine.Gone
	case Unanswered:
		r.Outcome = engine.Unanswered
	default:
		r.Outcome = engine.Interrupted
	}
	return r
}

// ended counts a pass and says what failed.
func (h *host) ended(r engine.Report) {
	switch r.Result.Outcome {
	case engine.Succeeded, engine.Gone:
		h.tally.succeeded.Add(1)
		if r.Result.After >= pollLeast {
			h.loops.woken(Key(r.Key))
		}
	case engine.Failed:
		if errors.Is(r.Result.Err, errNotYet) {
			return
		}
		h.tally.failed.Add(1)
		h.log.Warn("a pass failed and is retried", "manifest", Key(r.Key).String(), "failures", r.Failures, "cause", r.Result.Err)
	default:
		h.tally.interrupted.Add(1)
	}
}

// spread is a manifest's own number in [0,1).
func spread(key Key) float64 {
	f := fnv.New32a()
	f.Write([]byte(key.Namespace + "/" + key.Name))
	return float64(f.Sum32()%1000) / 1000
}
