package engine

import (
	"log/slog"
	"sync"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

// Engine drives the manifests of one source. It outlives the generations of its actors. Its methods may be called from any goroutine, also
// before its tree has started and after it has ended.
type Engine struct {
	name    string
	source  Source
	hooks   Hooks
	timings Timings
	limits  Limits
	board   *board
	outage  *outage
	// template is the spec of a manifest's actor, which a configuration may have changed; hang is its window before that.
	template *supervision.Spec
	hang     time.Duration

	mu sync.Mutex
	// feed is that of the current dispatcher.
	feed Feed
}

// New puts an engine together. The name is its path segment.
func New(name string, source Source, hooks Hooks, timings Timings, limits Limits) *Engine {
	if hooks.Log == nil {
		hooks.Log = slog.New(slog.DiscardHandler)
	}
	if hooks.Done == nil {
		hooks.Done = func(Key, any) {}
	}
	if limits.Timeout <= 0 {
		limits.Timeout = DefaultTimeout
	}
	template := catalog.Row("reconciler")
	return &Engine{
		name: name, source: source, hooks: hooks, timings: timings, limits: limits,
		board: newBoard(limits.Concurrency), outage: &outage{}, template: &template, hang: template.HangAfter,
	}
}

// Spec is the supervised subtree of a new engine, for those who need none of its methods.
func Spec(name string, source Source, hooks Hooks, timings Timings, limits Limits) supervision.Spec {
	return New(name, source, hooks, timings, limits).Spec()
}

// Spec is the supervised subtree: the pool of manifests, and the dispatcher that wakes them. More children may be put between them. It is
// started once at a time.
func (e *Engine) Spec() supervision.Spec {
	pool := catalog.Row("manifests")
	pool.ID, pool.Template = PoolID, e.template
	dispatch := catalog.Row("dispatcher")
	dispatch.Start = func() supervision.Handler { return &dispatcher{Engine: e} }
	group := catalog.Row("controller")
	group.ID = e.name
	group.Children = []supervision.Spec{pool, dispatch}
	return group
}

// Cancel calls the running pass of a manifest off: its context ends with the reason as its cause. What it comes to is Interrupted then,
// unless it succeeds all the same. Nothing happens when none runs.
func (e *Engine) Cancel(key Key, reason error) { e.board.cancel(key, reason) }

// Gained brings a pass of a manifest about that Start may have refused before. Calls may come before the source knows the manifest: then
// the source wakes it.
func (e *Engine) Gained(key Key) { e.board.nudge(key, true) }

// Wake brings a pass of a manifest about, whatever its passes have seen. One that Start refuses has none.
func (e *Engine) Wake(key Key) { e.board.nudge(key, false) }

// Stats is a look at what there is now.
func (e *Engine) Stats() Stats { return e.board.stats() }

// timeout bounds a pass. A configuration that gives the actors another window to hang in means their passes.
func (e *Engine) timeout() time.Duration {
	if e.template.HangAfter != e.hang {
		return e.template.HangAfter
	}
	return e.limits.Timeout
}

// subscribe opens the feed of a new dispatcher, in place of that of one that could not close its own.
func (e *Engine) subscribe(notify func()) Feed {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.feed != nil {
		e.feed.Close()
	}
	e.feed = e.source.Subscribe(notify)
	return e.feed
}
