package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

const (
	// closeLimit bounds how long a failed member may take to end before its files are copied away from it.
	closeLimit = 3 * time.Second
	// lookEvery is how often a seat that waits for its disk looks at it again.
	lookEvery = 100 * time.Millisecond
	// blameDisk is how long a log shared with other members stands still before the disk is suspected rather than their leader.
	blameDisk = 5 * time.Second
)

// Seat is an Engine that outlives its members: one is seated, fails, and is followed by the next on the same directory. While it is empty
// every call fails with ErrClosed.
type Seat struct {
	cfg    Config
	member atomic.Pointer[Member]
	pace   pace
	room   room
	quota  *quota
	hold   hold
	books  books
	twins  twins

	mu sync.Mutex // one change of member at a time
	// left is a member that was taken away and did not end in time.
	left *Member
	// lost is closed when the seated member has failed; it is replaced with the member.
	lost atomic.Pointer[failure]
	// next tells when another member has been seated.
	next atomic.Pointer[failure]
}

var _ Engine = (*Seat)(nil)

// NewSeat returns an empty seat.
func NewSeat(cfg Config) *Seat {
	s := &Seat{cfg: cfg, room: room{dir: cfg.Dir}, quota: newQuota(cfg.QuotaBytes)}
	empty := newFailure()
	empty.set(ErrClosed)
	s.lost.Store(empty)
	s.next.Store(newFailure())
	return s
}

// Fill opens a member and seats it. It waits for as long as ctx while the disk has no room for one.
func (s *Seat) Fill(ctx context.Context) (*Member, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.member.Load(); m != nil {
		return m, nil
	}
	if err := s.room.await(ctx, s.cfg.Clock, s.cfg.Log); err != nil {
		return nil, fmt.Errorf("cannot open store %s: %w", s.cfg.Dir, err)
	}
	if err := s.settle(ctx); err != nil {
		return nil, fmt.Errorf("cannot open store %s: %w", s.cfg.Dir, err)
	}
	m, err := Open(ctx, s.cfg)
	if err != nil {
		return nil, err
	}
	s.pace.reset()
	s.twins.raise(m.Revision())
	s.lost.Store(m.failed)
	s.member.Store(m)
	s.next.Swap(newFailure()).set(nil)
	return m, nil
}

// Empty takes the member away and closes it. It waits as long as ctx, and for a failed member, which may never end, no longer than seconds.
func (s *Seat) Empty(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.member.Swap(nil)
	if m == nil {
		return nil
	}
	if m.Err() != nil {
		limited, cancel := context.WithTimeout(ctx, closeLimit)
		defer cancel()
		ctx = limited
	}
	if err := m.Close(ctx); err != nil {
		s.left = m
		return err
	}
	return nil
}

// settle makes the directory free for the next member when the one before did not end in time. One that only waits for its disk is waited
// for; one that has lost a goroutine never ends, and its files are copied away from it.
func (s *Seat) settle(ctx context.Context) error {
	if s.left == nil {
		return nil
	}
	if !s.left.broken() {
		if err := s.left.Close(ctx); err != nil {
			return err
		}
		s.left = nil
		return nil
	}
	if err := leaveBehind(s.cfg.Dir); err != nil {
		return err
	}
	s.cfg.Log.Warn("the store's failed member would not end: its files were copied for the next one", "dir", s.cfg.Dir)
	s.left.release()
	s.left = nil
	return nil
}

// current returns the member to ask.
func (s *Seat) current() (*Member, error) {
	m := s.member.Load()
	switch {
	case m != nil:
		return m, nil
	case s.room.waiting.on.Load():
		return nil, fmt.Errorf("%w: %w", ErrClosed, full(s.cfg.Dir, freeBytes(s.cfg.Dir), openBytes))
	}
	return nil, ErrClosed
}

// Txn implements Engine. A write that was begun and is held up, by its disk or by the loss of its member, waits for as long as ctx; by the
// loss of the quorum only for seconds. When it returns without ErrUnknown its outcome is known.
func (s *Seat) Txn(ctx context.Context, w Write) (Result, error) {
	m, err := s.admit(ctx, askOf(w))
	if err != nil {
		return Result{}, err
	}
	begin := s.cfg.Clock.Now()
	s.pace.begin(begin, m.applied())
	twin := s.twins.begin(w)
	try := attempt{seat: s, w: w, since: twin.since, twin: twin, do: (*Member).Txn}
	res, err := try.run(ctx, m)
	twin.done(res.Revision, err)
	s.pace.end(!errors.Is(err, ErrUnknown))
	if err == nil {
		s.books.commits.add(s.cfg.Clock.Now().Sub(begin))
	}
	return res, err
}

// answering returns the member that can tell what became of a write given to m.
func (s *Seat) answering(ctx context.Context, m *Member) (*Member, error) {
	if m.Err() == nil {
		err := s.flowing(ctx, m, 0)
		if err == nil {
			err = s.led(ctx, m)
		}
		if err == nil || m.Err() == nil {
			return m, err
		}
	}
	for limit := s.cfg.Clock.Now().Add(queueFor); s.cfg.Clock.Now().Before(limit); {
		if now := s.member.Load(); now != nil && now.Err() == nil {
			return now, supervision.CheckFence(ctx)
		}
		if err := s.cfg.Clock.Sleep(ctx, lookEvery); err != nil {
			return nil, err
		}
	}
	return nil, m.translate(m.Err())
}

// Range implements Engine.
func (s *Seat) Range(ctx context.Context, from, to string, revision, limit int64) (Page, error) {
	m, err := s.current()
	if err != nil {
		return Page{}, err
	}
	return m.Range(ctx, from, to, revision, limit)
}

// Watch implements Engine; it ends with its member.
func (s *Seat) Watch(ctx context.Context, from, to string, after int64, f func(Batch) error) error {
	m, err := s.current()
	if err != nil {
		return err
	}
	return m.Watch(ctx, from, to, after, f)
}

// History implements Engine.
func (s *Seat) History(ctx context.Context, from, to string, after, upto int64, limit int) ([]Change, int64, error) {
	if after >= upto {
		return nil, after, nil
	}
	m, err := s.current()
	if err != nil {
		return nil, after, err
	}
	return m.History(ctx, from, to, after, upto, limit)
}

// Barrier implements Engine.
func (s *Seat) Barrier(ctx context.Context) (int64, error) {
	m, err := s.current()
	if err != nil {
		return 0, err
	}
	return m.Barrier(ctx)
}

// Revision implements Engine; 0 while the seat is empty.
func (s *Seat) Revision() int64 {
	if m := s.member.Load(); m != nil {
		return m.Revision()
	}
	return 0
}

// Solo implements Engine. An empty seat has nobody who could know more than what was applied.
func (s *Seat) Solo() bool {
	m := s.member.Load()
	return m == nil || m.Solo()
}

// Grant implements Engine.
func (s *Seat) Grant(ctx context.Context, ttl int64) (int64, error) {
	m, err := s.admit(ctx, ask{})
	if err != nil {
		return 0, err
	}
	return m.Grant(ctx, ttl)
}

// Compact implements Engine.
func (s *Seat) Compact(ctx context.Context, revision int64) error {
	m, err := s.admit(ctx, ask{frees: true, deletes: true})
	if err != nil {
		return err
	}
	return m.Compact(ctx, revision)
}

// Snapshot implements Engine.
func (s *Seat) Snapshot(ctx context.Context, w io.Writer) error {
	m, err := s.current()
	if err != nil {
		return err
	}
	return m.Snapshot(ctx, w)
}

// Status implements Engine; it is zero while the seat is empty.
func (s *Seat) Status() Status {
	if m := s.member.Load(); m != nil {
		return m.Status()
	}
	return Status{}
}

// Failed implements Engine, for the seated member; it is closed while the seat is empty.
func (s *Seat) Failed() <-chan struct{} { return s.lost.Load().ch }

// Err implements Engine.
func (s *Seat) Err() error { return s.lost.Load().get() }

// Close implements Engine.
func (s *Seat) Close(ctx context.Context) error { return s.Empty(ctx) }
