package cache

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// Waits of the cache's loop and of its readers.
const (
	// retryFirst and retryLast bound the wait before a lost stream is opened again; a delivered change resets it.
	retryFirst = 100 * time.Millisecond
	retryLast  = 30 * time.Second
	// beatEvery is the longest silence of a healthy loop.
	beatEvery = 10 * time.Second
	// silence is how long the loop may go without a beat before it counts as hanging; longer than any of its waits.
	silence = 2 * retryLast
	// firstList bounds the time until the indexes hold what the store held at the start.
	firstList = 20 * time.Second
)

// Clock is the time source of the loop.
type Clock interface {
	Sleep(ctx context.Context, d time.Duration) error
}

// Run keeps indexes and feeds up to date until the context ends: it lists, tells feeds what differs from what they know, then
// follows the stream. A lost stream is opened again on a growing wait. beat is called at least every beatEvery.
func (c *Cache) Run(ctx context.Context, clock Clock, beat func()) error {
	for wait := retryFirst; ctx.Err() == nil; wait = min(2*wait, retryLast) {
		delivered, err := c.follow(ctx, beat)
		if ctx.Err() != nil {
			break
		}
		c.log.Info("stored changes are read again from a list", "cause", err)
		if delivered {
			wait = retryFirst
		}
		beat()
		if clock.Sleep(ctx, wait) != nil {
			break
		}
	}
	return ctx.Err()
}

// follow lists once and then applies the stream until it fails. delivered tells whether the stream brought anything.
func (c *Cache) follow(ctx context.Context, beat func()) (delivered bool, err error) {
	records, revision := c.source.List(registryRoot)
	if known := c.Applied(); revision == 0 || revision < known {
		return false, fmt.Errorf("cannot list at revision %d, known is %d: %w", revision, known, ErrSourceDown)
	}
	stream := c.source.Follow(registryRoot, revision)
	defer stream.Close()
	c.reset(records, revision)
	for {
		beat()
		events, err := stream.Poll(ctx)
		if err != nil {
			return delivered, fmt.Errorf("cannot follow stored changes: %w", err)
		}
		delivered = delivered || len(events) > 0
		c.apply(events, stream.Revision())
		if len(events) == 0 {
			c.rest(ctx, stream)
		}
		if ctx.Err() != nil {
			return delivered, ctx.Err()
		}
	}
}

// rest waits until the stream may have news, a reader wants to know how far the stream is, or a beat is due.
func (c *Cache) rest(ctx context.Context, stream Stream) {
	quiet, cancel := context.WithTimeout(ctx, beatEvery)
	defer cancel()
	select {
	case <-stream.Signal():
	case <-c.asked:
	case <-quiet.Done():
	}
}

// apply brings events into the indexes, then tells the feeds: who reads a change finds the indexes at least as new.
func (c *Cache) apply(events []SourceEvent, revision int64) {
	entries := make([]*entry, len(events))
	for i, event := range events {
		if !event.Deleted {
			entries[i] = newEntry(event.Record)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	changes := make([]Change, 0, len(events))
	for i, event := range events {
		if change, ok := c.applyOne(event, entries[i]); ok {
			changes = append(changes, change)
		}
	}
	c.advance(changes, revision)
}

// applyOne applies one event; false when the indexes already knew it.
func (c *Cache) applyOne(event SourceEvent, e *entry) (Change, bool) {
	if e == nil {
		before := c.index.remove(event.Record.Key)
		return changeOf(before, nil, event.Revision), before != nil
	}
	if known := c.index.objects[event.Record.Key]; known != nil && known.record.ModRevision >= e.record.ModRevision {
		return Change{}, false
	}
	return changeOf(c.index.put(e), e, event.Revision), true
}

// reset brings the indexes to a listed state and tells feeds the difference.
func (c *Cache) reset(records []Record, revision int64) {
	fresh := make(map[string]*entry, len(records))
	for _, r := range records {
		fresh[r.Key] = newEntry(r)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	changes := append(c.vanished(fresh, revision), c.arrived(fresh)...)
	c.advance(changes, revision)
}

func (c *Cache) vanished(fresh map[string]*entry, revision int64) []Change {
	var changes []Change
	for key := range c.index.objects {
		if fresh[key] == nil {
			changes = append(changes, changeOf(c.index.remove(key), nil, revision))
		}
	}
	return changes
}

func (c *Cache) arrived(fresh map[string]*entry) []Change {
	var changes []Change
	for key, e := range fresh {
		known := c.index.objects[key]
		if known == nil || known.record.ModRevision != e.record.ModRevision {
			changes = append(changes, changeOf(c.index.put(e), e, e.record.ModRevision))
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(a.Revision, b.Revision) })
	return changes
}

func (c *Cache) advance(changes []Change, revision int64) {
	if revision > c.applied {
		c.applied = revision
		close(c.moved)
		c.moved = make(chan struct{})
	}
	if len(changes) == 0 {
		return
	}
	for _, f := range c.feeds {
		f.offer(changes)
	}
}

func changeOf(before, after *entry, revision int64) Change {
	change := Change{Revision: revision}
	if before != nil {
		change.Key, change.Old, change.OldMeta = before.record.Key, before.record, before.meta
	}
	if after != nil {
		change.Key, change.New, change.NewMeta = after.record.Key, after.record, after.meta
	}
	return change
}

// WaitFor blocks until indexes and feeds have seen a revision; the context's error when it ends first.
func (c *Cache) WaitFor(ctx context.Context, revision int64) error {
	for {
		c.mu.RLock()
		applied, moved := c.applied, c.moved
		c.mu.RUnlock()
		if applied >= revision {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cannot wait for revision %d, at %d: %w", revision, applied, ctx.Err())
		case <-moved:
		}
	}
}

// Sync blocks until the indexes hold everything the source holds now, so everything this process has had acknowledged.
// ErrSourceDown when the source is not there.
func (c *Cache) Sync(ctx context.Context) error {
	revision := c.source.Revision()
	if revision == 0 {
		return fmt.Errorf("cannot wait for the newest revision: %w", ErrSourceDown)
	}
	if c.Applied() < revision {
		c.ask()
	}
	return c.WaitFor(ctx, revision)
}

// ask makes the loop look how far the stream is, which moves on without a change of ours too.
func (c *Cache) ask() {
	select {
	case c.asked <- struct{}{}:
	default:
	}
}
