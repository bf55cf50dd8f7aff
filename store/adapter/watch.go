package adapter

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	utilflowcontrol "k8s.io/apiserver/pkg/util/flowcontrol"

	"github.com/nodeactor/nodeactor/store/engine"
	"github.com/nodeactor/nodeactor/store/index"
)

const (
	// watchBuffer is how many events wait for a slow client before its watcher does. What comes after them waits in the store's ring, then in
	// the engine's history: a client that does not read holds these and one batch, and nobody waits for it.
	watchBuffer = 32
	// bookmarkEvery is how often a quiet watcher that may be told so learns how far it has come.
	bookmarkEvery = time.Minute
	// progressEvery is the same for a watcher that asked for progress; only caches inside the process do.
	progressEvery = 5 * time.Second
	// bookmarkBeforeEnd is how long before a watch times out its client is told where to resume.
	bookmarkBeforeEnd = 2 * time.Second
	// tooLargeRetry is the number of seconds after which a client ahead of the store may try again.
	tooLargeRetry = 1
)

// Watch implements storage.Interface.
func (s *Store) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	prefix, err := s.key(key, opts.Recursive)
	if err != nil {
		return nil, err
	}
	rv, err := s.versioner.ParseResourceVersion(opts.ResourceVersion)
	if err != nil {
		return nil, err
	}
	if opts.ProgressNotify && s.cfg.NewFunc == nil {
		return nil, apierrors.NewInternalError(errors.New("cannot notify of progress: no function for new objects"))
	}
	w := s.newWatcher(ctx, prefix, opts)
	if err := w.start(int64(rv), opts); err != nil {
		w.cancel()
		return nil, err
	}
	s.watchers.Add(1)
	if !s.backend.Go("watch", w.run) {
		w.cancel()
		_ = w.run(w.ctx)
		return nil, s.fault(index.ErrClosed)
	}
	// The index is always initialised, so the signal is true at once.
	utilflowcontrol.WatchInitialized(ctx)
	return w, nil
}

// RequestWatchProgress implements storage.Interface: every watcher that asked for progress hears of it soon.
func (s *Store) RequestWatchProgress(context.Context) error {
	s.progress.tell()
	return nil
}

// watcher is one client's watch.
type watcher struct {
	store     *Store
	ctx       context.Context
	cancel    context.CancelFunc
	prefix    string
	exact     bool
	match     matcher
	bookmarks bool // the client takes bookmarks
	progress  bool // the client wants progress
	results   chan watch.Event
	ticks     chan struct{}
	wantTick  atomic.Bool
	last      atomic.Bool // the watch is about to time out

	sub     *index.Subscription
	initial *source // state to send first, or nil
	endMark bool    // say when the initial state has been sent
	told    int64   // revision of the last event or bookmark
}

func (s *Store) newWatcher(ctx context.Context, prefix string, opts storage.ListOptions) *watcher {
	w := &watcher{
		store:     s,
		prefix:    prefix,
		exact:     !opts.Recursive,
		match:     newMatcher(&opts.Predicate),
		bookmarks: opts.Predicate.AllowWatchBookmarks,
		progress:  opts.ProgressNotify,
		results:   make(chan watch.Event, watchBuffer),
		ticks:     make(chan struct{}, 1),
	}
	w.ctx, w.cancel = context.WithCancel(ctx)
	return w
}

// start fixes from where the watch begins, before Watch returns: what is written afterwards is seen.
func (w *watcher) start(rv int64, opts storage.ListOptions) error {
	// Resource version 0 asks for whatever is at hand.
	if opts.ResourceVersion != "0" && (rv == 0 || wantsInitial(opts)) {
		if err := w.store.barrier(w.ctx); err != nil {
			return err
		}
	}
	after := rv
	if initial := wantsInitial(opts) || (rv == 0 && opts.SendInitialEvents == nil); initial {
		snap := w.store.backend.Index.Snapshot(w.prefix)
		if rv > snap.Revision {
			return w.refuse(rv, snap.Revision)
		}
		w.initial = &source{snap: snap, dir: w.prefix, rev: snap.Revision, exact: w.exact}
		w.endMark = wantsInitial(opts) && w.bookmarks
		after = snap.Revision
	}
	w.sub = w.store.backend.Index.Subscribe(index.SubscribeOptions{Prefixes: []string{w.prefix}, After: after})
	w.told = w.sub.After()
	return nil
}

// refuse makes a watch whose only event says that the client is ahead of the store.
func (w *watcher) refuse(rv, have int64) error {
	w.sub = w.store.backend.Index.Subscribe(index.SubscribeOptions{Prefixes: []string{w.prefix}})
	w.results <- errorEvent(storage.NewTooLargeResourceVersionError(uint64(rv), uint64(have), tooLargeRetry))
	w.cancel()
	return nil
}

func wantsInitial(opts storage.ListOptions) bool {
	return opts.SendInitialEvents != nil && *opts.SendInitialEvents && utilfeature.DefaultFeatureGate.Enabled(features.WatchList)
}

// Stop implements watch.Interface.
func (w *watcher) Stop() { w.cancel() }

// ResultChan implements watch.Interface.
func (w *watcher) ResultChan() <-chan watch.Event { return w.results }

// run sends events until the client or the store is gone.
func (w *watcher) run(storeCtx context.Context) error {
	stop := context.AfterFunc(storeCtx, w.cancel)
	defer stop()
	defer w.store.watchers.Add(-1)
	defer close(w.results)
	defer w.sub.Close()
	defer w.cancel()
	defer w.schedule()()
	if err := w.stream(); err != nil && w.ctx.Err() == nil {
		w.fail(err)
	}
	return nil
}

func (w *watcher) stream() error {
	if err := w.sendInitial(); err != nil {
		return err
	}
	for {
		events, err := w.sub.Poll(w.ctx)
		if err != nil {
			return err
		}
		for _, ev := range events {
			if err := w.sendEvent(ev); err != nil {
				return err
			}
		}
		if len(events) > 0 && !w.wantTick.Load() {
			continue
		}
		if err := w.tick(); err != nil {
			return err
		}
		if len(events) > 0 {
			continue
		}
		select {
		case <-w.sub.Signal():
		case <-w.ticks:
		case <-w.ctx.Done():
			return w.ctx.Err()
		}
	}
}

// sendInitial sends the state the watch begins with as additions.
func (w *watcher) sendInitial() (err error) {
	if w.initial == nil {
		return nil
	}
	w.initial.each(func(item *index.Item) bool {
		var f *form
		if f, err = w.store.form(w.ctx, item); err != nil {
			return false
		}
		if ok, merr := w.match.matches(f.obj); merr == nil && ok {
			err = w.send(watch.Event{Type: watch.Added, Object: f.obj.DeepCopyObject()})
		}
		return err == nil
	})
	rev := w.initial.rev
	w.initial = nil
	if err != nil || !w.endMark {
		return err
	}
	return w.bookmark(rev, storage.AnnotateInitialEventsEndBookmark)
}

// sendEvent sends what ev means to this watcher's selection, if anything.
func (w *watcher) sendEvent(ev index.Event) error {
	if w.exact && ev.Item.Key != w.prefix || !strings.HasPrefix(ev.Item.Key, w.prefix) {
		return nil
	}
	out, err := w.translate(ev)
	if err != nil || out == nil {
		return err
	}
	w.told = ev.Revision
	return w.send(*out)
}

func (w *watcher) translate(ev index.Event) (*watch.Event, error) {
	now, err := w.selected(ev, ev.Item, ev.Type != index.Deleted)
	if err != nil {
		return nil, err
	}
	before := now && w.match.all() && ev.Prev != nil
	if !before {
		if before, err = w.selected(ev, ev.Prev, ev.Prev != nil); err != nil {
			return nil, err
		}
	}
	switch {
	case now && before:
		return w.event(watch.Modified, ev, ev.Item)
	case now:
		return w.event(watch.Added, ev, ev.Item)
	case before:
		return w.event(watch.Deleted, ev, ev.Prev)
	}
	return nil, nil
}

// selected reports whether item is there and matches.
func (w *watcher) selected(ev index.Event, item *index.Item, there bool) (bool, error) {
	if !there {
		return false, nil
	}
	if w.match.all() {
		return true, nil
	}
	f, err := w.store.form(w.ctx, item)
	if err != nil {
		return false, w.unreadable(ev, err)
	}
	ok, err := w.match.matchesEvent(ev, w.store.owner, item, f.obj)
	return ok && err == nil, nil
}

// unreadable is the error a watcher ends with when an object cannot be decoded.
func (w *watcher) unreadable(ev index.Event, err error) error {
	if ev.Type != index.Deleted {
		return err
	}
	return deletedUnreadable(err)
}

// event builds the watch event, sharing its object and encoding with all watchers of the resource.
func (w *watcher) event(t watch.EventType, ev index.Event, item *index.Item) (*watch.Event, error) {
	slot := eventSlot{w.store.owner, t == watch.Deleted}
	if shared := ev.Forms().Get(slot); shared != nil {
		return &watch.Event{Type: t, Object: w.share(shared.(*sharedObject))}, nil
	}
	f, err := w.store.form(w.ctx, item)
	if err != nil {
		return nil, w.unreadable(ev, err)
	}
	obj := f.obj
	if t == watch.Deleted {
		if obj, err = w.store.at(obj, ev.Revision); err != nil {
			return nil, err
		}
	}
	shared := ev.Forms().Set(slot, newSharedObject(obj)).(*sharedObject)
	return &watch.Event{Type: t, Object: w.share(shared)}, nil
}

// shareFrom is the number of watchers of a resource from which on keeping an encoding is worth its memory.
const shareFrom = 3

// share returns the object as one watcher gets it: shared with the others, or a copy of its own.
func (w *watcher) share(o *sharedObject) runtime.Object {
	if w.store.watchers.Load() < shareFrom {
		return o.GetObject()
	}
	return o
}

// eventSlot is where on an event its object is shared.
type eventSlot struct {
	owner *formOwner
	gone  bool
}

func (w *watcher) send(ev watch.Event) error {
	select {
	case w.results <- ev:
		return nil
	default:
	}
	select {
	case w.results <- ev:
		return nil
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
}

// fail sends err as the last event.
func (w *watcher) fail(err error) {
	if errors.Is(err, index.ErrCompacted) || errors.Is(err, index.ErrOverflow) {
		err = apierrors.NewResourceExpired("The resourceVersion for the provided watch is too old.")
	}
	if errors.Is(err, index.ErrClosed) || errors.Is(err, engine.ErrClosed) {
		// A watch that just ends makes clients resume where they were.
		return
	}
	_ = w.send(errorEvent(err))
}

func errorEvent(err error) watch.Event {
	status, ok := err.(apierrors.APIStatus)
	if !ok {
		status = apierrors.NewInternalError(err)
	}
	s := status.Status()
	return watch.Event{Type: watch.Error, Object: &s}
}
