package supervisionrest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/nodeactor/nodeactor/supervision"
)

// settle is how long changes are collected before they are sent: an actor that changes often is sent as it is then.
const settle = 100 * time.Millisecond

// watcher sends what changes to one client. What waits for a slow client are the paths that changed, each once.
type watcher struct {
	*storage
	match  func(o object) bool
	events chan watch.Event
	cancel func()

	mu    sync.Mutex
	dirty map[string]int64 // by path, the number of the last change
	wake  chan struct{}

	known map[string]bool // paths of the objects that the client has
}

// Watch implements rest.Watcher.
func (s *storage) Watch(ctx context.Context, options *internalversion.ListOptions) (watch.Interface, error) {
	w := &watcher{storage: s, match: s.matcher(options), events: make(chan watch.Event), dirty: map[string]int64{}, wake: make(chan struct{}, 1), known: map[string]bool{}}
	since, initial, bookmark := beginning(options)
	if !s.feed.join(w, since) {
		return nil, apierrors.NewResourceExpired("the changes since that resource version are not known any more")
	}
	run := supervision.NewGroup(ctx, "watch of "+s.names().plural, nil)
	forget := context.AfterFunc(s.feed.ctx, run.Cancel)
	w.cancel = func() { forget(); run.Cancel() }
	run.Go("send", func(ctx context.Context) error {
		defer close(w.events)
		defer s.feed.leave(w)
		return w.run(ctx, initial, bookmark)
	})
	return w, nil
}

// beginning tells what a watch begins with: the changes since a revision, or what there is, and whether the end of that is to be marked.
func beginning(options *internalversion.ListOptions) (since string, initial, bookmark bool) {
	if options == nil {
		return "", true, false
	}
	if send := options.SendInitialEvents; send != nil && *send {
		return "", true, options.AllowWatchBookmarks
	}
	if options.ResourceVersion == "" || options.ResourceVersion == "0" {
		return "", options.SendInitialEvents == nil, false
	}
	return options.ResourceVersion, false, false
}

// Stop implements watch.Interface.
func (w *watcher) Stop() { w.cancel() }

// ResultChan implements watch.Interface.
func (w *watcher) ResultChan() <-chan watch.Event { return w.events }

// change is what a client has to be told.
type change struct {
	path   string
	number int64
}

// mark notes the change of an actor; it does not block.
func (w *watcher) mark(path string, number int64) {
	w.mu.Lock()
	w.dirty[path] = number
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// take returns what has changed since it was called last, in the order of the numbers: a client that goes on later from the number of what it
// got last has missed nothing.
func (w *watcher) take() (changes []change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for path, number := range w.dirty {
		changes = append(changes, change{path, number})
	}
	clear(w.dirty)
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.number, b.number) })
	return changes
}

func (w *watcher) run(ctx context.Context, initial, bookmark bool) error {
	revision := w.feed.revision()
	if err := w.begin(ctx, initial, revision); err != nil {
		return err
	}
	if bookmark {
		if err := w.bookmark(ctx, revision); err != nil {
			return err
		}
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.wake:
		}
		if err := w.tree.Clock().Sleep(ctx, settle); err != nil {
			return err
		}
		for _, c := range w.take() {
			if err := w.refresh(ctx, c); err != nil {
				return err
			}
		}
	}
}

// begin learns what there is, and sends it if that is wanted. What has changed before the watch began may be known to the client.
func (w *watcher) begin(ctx context.Context, send bool, revision string) (err error) {
	w.mu.Lock()
	for path := range w.dirty {
		w.known[path] = true
	}
	w.mu.Unlock()
	w.each("", revision, func(path string, o object) bool {
		if !w.match(o) {
			return true
		}
		w.known[path] = true
		if send {
			err = w.send(ctx, watch.Added, o)
		}
		return err == nil
	})
	return err
}

// bookmark marks the end of what there was.
func (w *watcher) bookmark(ctx context.Context, revision string) error {
	o := w.empty()
	o.SetResourceVersion(revision)
	o.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return w.send(ctx, watch.Bookmark, o)
}

// refresh sends what became of an actor that has changed. A pool that ends takes members along without a word of their own.
func (w *watcher) refresh(ctx context.Context, c change) error {
	if err := w.refreshOne(ctx, c); err != nil {
		return err
	}
	if s, policy := place(w.tree.Spec(), c.path); s == nil || policy != c.path || !isPool(s) {
		return nil
	}
	for path := range w.known {
		if !strings.HasPrefix(path, c.path+"/") {
			continue
		}
		if _, there := w.tree.Look(path); there {
			continue
		}
		if err := w.refreshOne(ctx, change{path, c.number}); err != nil {
			return err
		}
	}
	return nil
}

func (w *watcher) refreshOne(ctx context.Context, c change) error {
	revision := format(c.number)
	o, known := w.at(c.path, revision), w.known[c.path]
	switch {
	case o != nil && w.match(o) && known:
		return w.send(ctx, watch.Modified, o)
	case o != nil && w.match(o):
		w.known[c.path] = true
		return w.send(ctx, watch.Added, o)
	case !known:
		return nil
	case o == nil:
		o = w.gone(c.path, revision)
	}
	delete(w.known, c.path)
	return w.send(ctx, watch.Deleted, o)
}

func (w *watcher) send(ctx context.Context, kind watch.EventType, o object) error {
	select {
	case w.events <- watch.Event{Type: kind, Object: o}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
