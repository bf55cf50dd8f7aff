package cache

import (
	"context"
	"errors"
	"strings"
	"sync"
)

// feedLimit is how many changes a Feed holds for a slow reader before it gives up on being gap-free.
const feedLimit = 1 << 17

// ErrLost is returned when a Feed dropped changes because its reader was too slow. The feed goes on with what comes next; the
// reader lists again.
var ErrLost = errors.New("changes were dropped, list again")

// ErrClosed is returned when a Feed has been closed.
var ErrClosed = errors.New("the feed is closed")

// Change is one change of one object: a creation has a zero Old, a deletion a zero New. Metas are nil beside zero records.
type Change struct {
	Key              string
	Old, New         Record
	OldMeta, NewMeta *Meta
	Revision         int64
}

// Deleted tells whether the object is gone.
func (c Change) Deleted() bool { return c.New.Zero() }

// Meta is the metadata after the change, or before it for a deletion.
func (c Change) Meta() *Meta {
	if c.NewMeta != nil {
		return c.NewMeta
	}
	return c.OldMeta
}

// Latest is the record after the change, or before it for a deletion.
func (c Change) Latest() Record {
	if c.New.Zero() {
		return c.Old
	}
	return c.New
}

// Feed is a reader's queue of changes in revision order. One goroutine reads it.
type Feed struct {
	cache    *Cache
	prefixes []string

	mu     sync.Mutex
	queue  []Change
	lost   bool
	closed bool
	// ready holds one token when there is something to read; notify, if there is one, is called.
	ready  chan struct{}
	notify func()
}

// Next blocks for changes and hands over all that wait. ErrLost when some were dropped, ErrClosed after Close, the context's error
// when it ends.
func (f *Feed) Next(ctx context.Context) ([]Change, error) {
	for {
		if changes, err := f.Take(); changes != nil || err != nil {
			return changes, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-f.ready:
		}
	}
}

// Ready has a token when Take may have something.
func (f *Feed) Ready() <-chan struct{} { return f.ready }

// Take is Next without the wait: no changes and no error when there is nothing now.
func (f *Feed) Take() ([]Change, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost {
		f.lost, f.queue = false, nil
		return nil, ErrLost
	}
	if f.closed {
		return nil, ErrClosed
	}
	changes := f.queue
	f.queue = nil
	return changes, nil
}

// Close ends the feed.
func (f *Feed) Close() {
	f.cache.forget(f)
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.wake()
}

func (f *Feed) offer(changes []Change) {
	f.mu.Lock()
	for _, c := range changes {
		if f.wants(c.Key) {
			f.queue = append(f.queue, c)
		}
	}
	waiting := len(f.queue) > 0
	if len(f.queue) > feedLimit {
		f.lost, f.queue = true, nil
	}
	f.mu.Unlock()
	if waiting {
		f.wake()
	}
}

func (f *Feed) wants(key string) bool {
	if len(f.prefixes) == 0 {
		return true
	}
	for _, prefix := range f.prefixes {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

func (f *Feed) wake() {
	if f.notify != nil {
		f.notify()
	}
	select {
	case f.ready <- struct{}{}:
	default:
	}
}
