package supervisionrest

import (
	"context"
	"strconv"
	"sync"

	"github.com/nodeactor/nodeactor/supervision"
)

// kept is how many changes are remembered for watches that begin in the past.
const kept = 4096

// feed numbers the changes of the tree, remembers whose the last ones were, and tells watches. The numbers are the resource versions. They
// begin with the time in microseconds, so that those of a later feed are greater.
type feed struct {
	ctx   context.Context
	close func()

	mu       sync.Mutex
	first    int64
	last     int64
	ring     []string // ring[n%kept] is the path of change n
	watchers map[*watcher]bool
}

func newFeed(tree Tree) *feed {
	now := tree.Clock().Now().UnixMicro()
	f := &feed{first: now, last: now, ring: make([]string, kept), watchers: map[*watcher]bool{}}
	ctx, cancel := context.WithCancel(context.Background())
	forget := tree.Watch(f.note)
	f.ctx, f.close = ctx, func() { forget(); cancel() }
	return f
}

// note takes down a change.
func (f *feed) note(c supervision.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	f.ring[f.last%kept] = c.Path
	for w := range f.watchers {
		w.mark(c.Path, f.last)
	}
}

// revision is the number of the last change.
func (f *feed) revision() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return format(f.last)
}

func format(revision int64) string { return strconv.FormatInt(revision, 10) }

// join adds a watch, and marks for it what has changed since the revision; it reports whether that is known.
func (f *feed) join(w *watcher, since string) (ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	from := f.last
	if since != "" {
		var err error
		if from, err = strconv.ParseInt(since, 10, 64); err != nil || from < f.first || from < f.last-kept || from > f.last {
			return false
		}
	}
	if w.fixed() {
		return true
	}
	for n := from + 1; n <= f.last; n++ {
		w.mark(f.ring[n%kept], n)
	}
	f.watchers[w] = true
	return true
}

func (f *feed) leave(w *watcher) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.watchers, w)
}
