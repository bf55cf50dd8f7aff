package storage

import (
	"slices"
	"sync"
	"time"

	"github.com/nodeactor/nodeactor/cluster/lease"
	"github.com/nodeactor/nodeactor/supervision"
)

// sessions is the authority over the sessions of a store, in the process that has the store.
type sessions struct {
	clock supervision.Clock
	began time.Time

	mu        sync.Mutex
	authority *lease.Authority
	// dead are the sessions whose process is known to have ended.
	dead map[lease.SessionID]bool
	// told is what the feeds have been told of last.
	told Membership
	// due is when the authority is to be looked at again, stop what prevents it.
	due    lease.Instant
	stop   func() bool
	feeds  []*sessionFeed
	closed bool
}

func newSessions(clock supervision.Clock, holders []lease.SessionID) *sessions {
	s := &sessions{clock: clock, began: clock.Now(), dead: map[lease.SessionID]bool{}}
	s.authority = lease.NewAuthority(0, holders...)
	s.announce(false) // for the first appointment
	return s
}

// now is the time since the authority's beginning, by the monotonic clock: what the process was stopped counts.
func (s *sessions) now() lease.Instant { return s.clock.Now().Sub(s.began) }

// change lets f alter what is known of sessions, and tells whoever watches.
func (s *sessions) change(f func(now lease.Instant) error) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	now := s.now()
	if s.due != 0 && now-s.due >= stalled {
		// This process had been stopped, so that nobody could renew: which is not the fault of the holders.
		s.authority.Regrant(now)
	}
	err := f(now)
	s.authority.Expire(now)
	s.appoint(now)
	tell := s.news(now)
	s.mu.Unlock()
	for _, notify := range tell {
		notify()
	}
	return err
}

// appoint sees to it that the next end of a session is noticed.
func (s *sessions) appoint(now lease.Instant) {
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
	next, any := s.authority.Next(now)
	if s.due = next; !any {
		s.due = 0
		return
	}
	s.stop = s.clock.AfterFunc(next-now, func() { _ = s.change(func(lease.Instant) error { return nil }) })
}

func (s *sessions) renew(id lease.SessionID, leaving bool) error {
	return s.change(func(now lease.Instant) error {
		delete(s.dead, id)
		return s.authority.Renew(now, id, leaving)
	})
}

func (s *sessions) end(id lease.SessionID) error {
	return s.change(func(now lease.Instant) error {
		delete(s.dead, id)
		s.authority.End(now, id)
		return nil
	})
}

// announce says that the process of a session has ended, or that it has not.
func (s *sessions) announce(dead bool, ids ...lease.SessionID) {
	_ = s.change(func(lease.Instant) error {
		for _, id := range ids {
			if delete(s.dead, id); dead {
				s.dead[id] = true
			}
		}
		return nil
	})
}

func (s *sessions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.stop != nil {
		s.stop()
	}
}

// membership is what is known now. A verdict on a session that has run out is of no use any more.
func (s *sessions) membership(now lease.Instant) Membership {
	m := Membership{Sessions: s.authority.Sessions(now)}
	for _, l := range m.Live {
		if s.dead[l.ID] {
			m.Dead = append(m.Dead, l.ID)
		}
	}
	if len(m.Dead) < len(s.dead) {
		s.dead = map[lease.SessionID]bool{}
		for _, id := range m.Dead {
			s.dead[id] = true
		}
	}
	return m
}

// news are the callbacks of those who have not heard yet of what is known now.
func (s *sessions) news(now lease.Instant) (tell []func()) {
	m := s.membership(now)
	if same(m, s.told) {
		return nil
	}
	s.told = m
	for _, f := range s.feeds {
		f.fresh = true
		tell = append(tell, f.notify)
	}
	return tell
}

func same(a, b Membership) bool {
	return a.Grace == b.Grace && slices.Equal(a.Live, b.Live) && slices.Equal(a.Dead, b.Dead)
}

// sessionFeed is a watch of sessions; it is guarded by their lock.
type sessionFeed struct {
	of     *sessions
	notify func()
	fresh  bool
}

func (s *sessions) watch(notify func()) SessionFeed {
	f := &sessionFeed{of: s, notify: notify, fresh: true}
	s.mu.Lock()
	s.feeds = append(s.feeds, f)
	s.mu.Unlock()
	notify()
	return f
}

// Take implements SessionFeed.
func (f *sessionFeed) Take() (Membership, bool) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if !f.fresh {
		return Membership{}, false
	}
	f.fresh = false
	m := f.of.told
	m.Live, m.Dead = slices.Clone(m.Live), slices.Clone(m.Dead)
	return m, true
}

// Close implements SessionFeed.
func (f *sessionFeed) Close() {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	f.of.feeds = slices.DeleteFunc(f.of.feeds, func(o *sessionFeed) bool { return o == f })
}
