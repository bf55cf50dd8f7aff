package adapter

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// schedule arranges the ticks at which the watcher tells how far it has come; the result cancels them.
func (w *watcher) schedule() (cancel func()) {
	if w.progress {
		w.store.progress.add(w)
		return func() { w.store.progress.remove(w) }
	}
	if !w.bookmarks {
		return func() {}
	}
	t := &ticker{w: w}
	t.arm(bookmarkEvery)
	stopLast := func() bool { return false }
	if deadline, ok := w.ctx.Deadline(); ok {
		if left := deadline.Sub(w.store.backend.Clock.Now()) - bookmarkBeforeEnd; left > 0 {
			stopLast = w.store.backend.Clock.AfterFunc(left, func() { w.last.Store(true); w.requestTick() })
		}
	}
	return func() { t.stop(); stopLast() }
}

// ticker asks a watcher for a bookmark again and again.
type ticker struct {
	w       *watcher
	mu      sync.Mutex
	cancel  func() bool
	stopped bool
}

func (t *ticker) arm(every time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return
	}
	t.cancel = t.w.store.backend.Clock.AfterFunc(every, func() {
		t.w.requestTick()
		t.arm(every)
	})
}

func (t *ticker) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	t.cancel()
}

func (w *watcher) requestTick() {
	w.wantTick.Store(true)
	select {
	case w.ticks <- struct{}{}:
	default:
	}
}

// tick sends a bookmark if one was asked for.
func (w *watcher) tick() error {
	if !w.wantTick.Swap(false) {
		return nil
	}
	rev := w.sub.Revision()
	if last := w.last.Load(); rev < w.told || rev == w.told && !w.progress && !last {
		return nil
	}
	return w.bookmark(rev, nil)
}

// bookmark tells the client that it has seen everything up to rev.
func (w *watcher) bookmark(rev int64, annotate func(runtime.Object) error) error {
	obj := w.store.cfg.NewFunc()
	if err := w.store.versioner.UpdateObject(obj, uint64(rev)); err != nil {
		return err
	}
	if annotate != nil {
		if err := annotate(obj); err != nil {
			return err
		}
	}
	w.told = rev
	return w.send(watch.Event{Type: watch.Bookmark, Object: obj})
}

// progress keeps the watchers that asked for progress. It ticks only while there are any.
type progress struct {
	mu       sync.Mutex
	watchers map[*watcher]struct{}
	cancel   func() bool
}

func (p *progress) add(w *watcher) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watchers == nil {
		p.watchers = map[*watcher]struct{}{}
	}
	p.watchers[w] = struct{}{}
	if p.cancel == nil {
		p.armLocked(w.store)
	}
}

func (p *progress) armLocked(s *Store) {
	p.cancel = s.backend.Clock.AfterFunc(progressEvery, func() {
		p.tell()
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.cancel = nil; len(p.watchers) > 0 {
			p.armLocked(s)
		}
	})
}

func (p *progress) remove(w *watcher) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.watchers, w)
}

func (p *progress) tell() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.watchers {
		w.requestTick()
	}
}
