package storage

import (
	"errors"
	"slices"
	"sync"
)

// sharedFeed goes on with the next role where it was with the last.
type sharedFeed struct {
	of     *SharedStore
	filter Filter
	notify func()

	mu sync.Mutex
	// under is the feed of the present role, nil while there is none; at is the revision up to which all was taken.
	under  source
	at     Revision
	err    error
	closed bool
}

// Watch implements Store.
func (s *SharedStore) Watch(from Revision, filter Filter, notify func()) (Feed, error) {
	f := &sharedFeed{of: s, filter: filter, notify: notify, at: from}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, ErrClosed
	}
	s.feeds = append(s.feeds, f)
	now := s.now
	s.mu.Unlock()
	if now != nil {
		f.move(now)
	}
	return f, nil
}

// move begins with a role where the last one ended. What that had told and nobody has taken is told again.
func (f *sharedFeed) move(r role) {
	f.mu.Lock()
	at, over := f.at, f.closed || f.err != nil
	f.mu.Unlock()
	if over {
		return
	}
	under, err := r.watch(at, f.filter, f.notify)
	if f.settle(r, under, err) {
		f.notify()
	}
}

// settle takes the feed of a role, unless the role is over already or the feed is.
func (f *sharedFeed) settle(r role, under source, err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed || f.of.role() != r:
		if err == nil {
			under.Close()
		}
		return false
	case err != nil:
		f.err = err
	default:
		if f.under != nil {
			f.under.Close()
		}
		f.under = under
	}
	return true
}

// Take implements Feed.
func (f *sharedFeed) Take() ([]Change, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.of.over() {
		return nil, ErrClosed
	}
	if f.err != nil || f.under == nil {
		return nil, f.err
	}
	changes, at, err := f.under.take()
	switch {
	case errors.Is(err, ErrClosed), errors.Is(err, ErrAway):
		f.under = nil
		return nil, nil
	case err != nil:
		f.err = err
		return nil, err
	}
	f.at = at
	return changes, nil
}

// over tells whether the store is closed.
func (s *SharedStore) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Close implements Feed.
func (f *sharedFeed) Close() {
	f.of.mu.Lock()
	f.of.feeds = slices.DeleteFunc(f.of.feeds, func(o *sharedFeed) bool { return o == f })
	f.of.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.under != nil {
		f.under.Close()
	}
}

// sharedSessions is a watch of sessions over all roles.
type sharedSessions struct {
	of     *SharedStore
	notify func()

	mu     sync.Mutex
	under  SessionFeed
	closed bool
}

// WatchSessions implements Store.
func (s *SharedStore) WatchSessions(notify func()) SessionFeed {
	m := &sharedSessions{of: s, notify: notify}
	s.mu.Lock()
	s.members = append(s.members, m)
	now := s.now
	s.mu.Unlock()
	if now != nil {
		m.move(now)
	}
	return m
}

func (m *sharedSessions) move(r role) {
	under := r.WatchSessions(m.notify)
	m.mu.Lock()
	if m.closed || m.of.role() != r {
		m.mu.Unlock()
		under.Close()
		return
	}
	m.under = under
	m.mu.Unlock()
	m.notify()
}

// Take implements SessionFeed.
func (m *sharedSessions) Take() (Membership, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.under == nil {
		return Membership{}, false
	}
	return m.under.Take()
}

// Close implements SessionFeed.
func (m *sharedSessions) Close() {
	m.of.mu.Lock()
	m.of.members = slices.DeleteFunc(m.of.members, func(o *sharedSessions) bool { return o == m })
	m.of.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	if m.under != nil {
		m.under.Close()
	}
}
