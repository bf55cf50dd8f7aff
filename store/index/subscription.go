package index

import (
	"context"
	"errors"
	"strings"

	"github.com/nodeactor/nodeactor/store/engine"
)

const (
	// batchEvents and batchBytes bound the events one Next returns, and their values, give or take one revision's worth: a subscriber that
	// stands still holds as much.
	batchEvents, batchBytes = 256, 1 << 20
	// historyEvents bounds the events read from the engine's history at once, historyBytes about the bytes of their values.
	historyEvents, historyBytes = 1024, 4 << 20
	// minHistoryEvents are read at once however large they are.
	minHistoryEvents = 16
)

// SubscribeOptions says which events are wanted.
type SubscribeOptions struct {
	Prefixes []string // of keys; none = everything
	After    int64    // events newer than this revision; 0 = those after the call
}

// Subscription is one reader's place in the stream of events. Next is called by one goroutine at a time.
type Subscription struct {
	index    *Index
	prefixes []string
	signal   chan struct{} // holds one token when there may be news

	// Guarded by the index lock.
	cursors []cursor
	live    bool  // cursors are valid; else events after rev come from history
	after   int64 // older events are not wanted
	rev     int64 // everything up to here has been returned
	tooOld  bool  // it began before what is kept
}

type cursor struct {
	r   *resource
	pos uint64
}

// Subscribe starts a subscription. The caller calls Close in the end.
func (x *Index) Subscribe(o SubscribeOptions) *Subscription {
	s := &Subscription{index: x, prefixes: o.Prefixes, signal: make(chan struct{}, 1), after: o.After}
	if len(s.prefixes) == 0 {
		s.prefixes = []string{Root}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if s.after == 0 {
		s.after = x.rev
	}
	s.rev = s.after
	s.tooOld = s.after < x.compacted
	x.subs[s] = struct{}{}
	for _, r := range x.resources {
		if s.wants(r.dir) {
			r.subs = append(r.subs, s)
			s.cursors = append(s.cursors, cursor{r: r})
		}
	}
	s.seek()
	return s
}

func (s *Subscription) wants(dir string) bool {
	for _, p := range s.prefixes {
		if overlaps(dir, p) {
			return true
		}
	}
	return false
}

func (s *Subscription) matches(key string) bool {
	for _, p := range s.prefixes {
		if strings.HasPrefix(key, p) {
			return true
		}
	}
	return false
}

// attachNew adds a resource that has just come to be. The lock is held.
func (s *Subscription) attachNew(r *resource) {
	if s.wants(r.dir) {
		r.subs = append(r.subs, s)
		s.cursors = append(s.cursors, cursor{r: r})
	}
}

// seek moves the cursors behind s.rev, if the rings reach back that far. The lock is held.
func (s *Subscription) seek() {
	s.live = s.rev >= s.index.loaded
	for i := range s.cursors {
		c := &s.cursors[i]
		pos, ok := c.r.ring.after(s.rev)
		c.pos = pos
		s.live = s.live && ok
	}
}

func (s *Subscription) wake() {
	select {
	case s.signal <- struct{}{}:
	default:
	}
}

// Close ends the subscription; a waiting Next returns ErrClosed.
func (s *Subscription) Close() {
	x := s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, ok := x.subs[s]; !ok {
		return
	}
	delete(x.subs, s)
	for _, c := range s.cursors {
		for i, o := range c.r.subs {
			if o == s {
				c.r.subs = append(c.r.subs[:i:i], c.r.subs[i+1:]...)
				break
			}
		}
	}
	s.cursors = nil
	s.wake()
}

// Revision is the revision up to which the subscription has returned everything it wants.
// It advances past revisions that had nothing for it. It is called by the goroutine that calls Next or Poll.
func (s *Subscription) Revision() int64 {
	s.index.mu.RLock()
	defer s.index.mu.RUnlock()
	if s.live && !s.pendingLocked() {
		return max(s.rev, s.index.rev)
	}
	return s.rev
}

func (s *Subscription) pendingLocked() bool {
	for _, c := range s.cursors {
		if c.pos < c.r.ring.next {
			return true
		}
	}
	return false
}

// Next waits for events and returns them in revision order, at least one. Events of one revision are never split.
// It fails with ErrCompacted, ErrOverflow or ErrClosed, or as ctx does.
func (s *Subscription) Next(ctx context.Context) ([]Event, error) {
	for {
		events, again, err := s.poll(ctx)
		if err != nil || len(events) > 0 {
			return events, err
		}
		if again {
			continue
		}
		select {
		case <-s.signal:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Signal has a token when Poll may have something new.
func (s *Subscription) Signal() <-chan struct{} { return s.signal }

// Poll is Next without the wait: no events and no error when there is nothing now.
func (s *Subscription) Poll(ctx context.Context) ([]Event, error) {
	for {
		events, again, err := s.poll(ctx)
		if err != nil || len(events) > 0 || !again {
			return events, err
		}
	}
}

func (s *Subscription) poll(ctx context.Context) (events []Event, again bool, err error) {
	events, again, upto, err := s.read()
	if upto == 0 {
		return events, again, err
	}
	return s.replay(ctx, upto)
}

// read takes what the rings have. A revision other than 0 says that they do not reach back to s.rev but history up to there does.
// The read lock is enough: what it changes belongs to the one goroutine that polls.
func (s *Subscription) read() (events []Event, again bool, upto int64, err error) {
	x := s.index
	x.mu.RLock()
	defer x.mu.RUnlock()
	if _, ok := x.subs[s]; !ok {
		return nil, false, 0, ErrClosed
	}
	switch {
	case x.closed != nil:
		return nil, false, 0, x.closed
	case s.tooOld:
		return nil, false, 0, ErrCompacted
	}
	if !s.live || !s.fresh() {
		s.live = false
		return nil, false, x.rev, nil
	}
	events = s.take()
	pending := s.pendingLocked()
	if !pending {
		s.rev = max(s.rev, x.rev)
	}
	return events, len(events) == 0 && pending, 0, nil
}

// fresh reports whether no ring has dropped events this subscription has not seen. The lock is held.
func (s *Subscription) fresh() bool {
	for _, c := range s.cursors {
		if c.pos < c.r.ring.first {
			return false
		}
	}
	return true
}

// take merges the next events of all rings. The lock is held.
func (s *Subscription) take() []Event {
	var out []Event
	for scanned, bytes := 0, 0; ; scanned++ {
		c := s.oldest()
		if c == nil {
			return out
		}
		e := c.r.ring.at(c.pos)
		if (scanned >= batchEvents || bytes >= batchBytes) && e.Revision != s.rev {
			return out
		}
		c.pos++
		if e.Revision > s.after {
			s.rev = e.Revision
			if s.matches(e.Item.Key) {
				out = append(out, *e)
				bytes += len(e.Item.Value)
			}
		}
	}
}

// oldest is the cursor whose next event has the lowest revision, or nil. The lock is held.
func (s *Subscription) oldest() *cursor {
	var best *cursor
	var bestRev int64
	for i := range s.cursors {
		c := &s.cursors[i]
		if c.pos == c.r.ring.next {
			continue
		}
		if rev := c.r.ring.at(c.pos).Revision; best == nil || rev < bestRev {
			best, bestRev = c, rev
		}
	}
	return best
}

// replay reads from the engine's history what the rings have dropped, and goes live when it has caught up with them.
func (s *Subscription) replay(ctx context.Context, upto int64) ([]Event, bool, error) {
	from, to := span(s.prefixes)
	changes, reached, err := s.index.history.History(ctx, from, to, s.rev, upto, s.historyLimit())
	switch {
	case errors.Is(err, engine.ErrCompacted) && s.rev > s.after:
		return nil, false, ErrOverflow
	case errors.Is(err, engine.ErrCompacted):
		return nil, false, ErrCompacted
	case err != nil:
		return nil, false, err
	}
	var out []Event
	for _, c := range changes {
		if DirOf(c.KV.Key) != "" && s.matches(c.KV.Key) {
			out = append(out, fromHistory(c))
		}
	}
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	s.rev = max(s.rev, reached)
	s.seek()
	return out, true, nil
}

// historyLimit is how many events to read from history at once, by the size of the objects that there are.
func (s *Subscription) historyLimit() int {
	s.index.mu.RLock()
	defer s.index.mu.RUnlock()
	limit := int64(historyEvents)
	for _, c := range s.cursors {
		if n := int64(c.r.tree.Len()); n > 0 {
			limit = min(limit, historyBytes/max(c.r.bytes/n, 1))
		}
	}
	return int(max(limit, minHistoryEvents))
}

func fromHistory(c engine.Change) Event {
	ev := Event{Type: Added, Revision: c.KV.ModRevision, forms: &Forms{}}
	if c.Prev != nil {
		ev.Type, ev.Prev = Modified, NewItem(*c.Prev)
	}
	if c.Delete {
		ev.Type, ev.Item = Deleted, ev.Prev
		return ev
	}
	ev.Item = NewItem(c.KV)
	return ev
}

// span is the smallest key range that holds all prefixes.
func span(prefixes []string) (from, to string) {
	from, to = prefixes[0], After(prefixes[0])
	for _, p := range prefixes[1:] {
		from, to = min(from, p), max(to, After(p))
	}
	return from, to
}

// After is the first key behind all that have the prefix.
func After(prefix string) string {
	b := []byte(prefix)
	b[len(b)-1]++
	return string(b)
}

// After is the revision behind which the subscription began.
func (s *Subscription) After() int64 { return s.after }
