package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

// ask is what a write wants of the store.
type ask struct {
	bytes   int
	frees   bool // it makes room, or must go on while there is none
	deletes bool // it needs no room in the database
}

func askOf(w Write) ask {
	return ask{bytes: len(w.Key) + len(w.Value), frees: w.Frees || w.Delete, deletes: w.Delete}
}

// Why a write was refused, as metrics name it.
const (
	ForQuota = "quota"
	ForDisk  = "disk"
	ForStall = "stalled"
)

// books are what a seat has said and counted of writes.
type books struct {
	// overQuota, diskFull and waiting are what was said of writes.
	overQuota, diskFull, waiting spell
	commits                      latencies
	// held is how many writes are being held back.
	held                        atomic.Int64
	rewriting                   atomic.Bool
	forQuota, forDisk, forStall atomic.Uint64
	defrags, failedDefrags      atomic.Uint64
	defragNanos, reclaimed      atomic.Int64
}

// admit lets a write of a current generation through once there is room for it and the disk keeps up.
func (s *Seat) admit(ctx context.Context, w ask) (*Member, error) {
	m, err := s.current()
	if err != nil {
		return nil, err
	}
	if err := supervision.CheckFence(ctx); err != nil {
		return nil, err
	}
	if err := s.fits(ctx, m, w); err != nil {
		return nil, err
	}
	if s.moving(m) {
		s.books.waiting.end(s.cfg.Log, "writes go on")
		return m, nil
	}
	if err := s.heldBack(ctx, m); err != nil {
		return nil, err
	}
	return m, supervision.CheckFence(ctx)
}

// fits refuses a write that the disk or the quota has no room for.
func (s *Seat) fits(ctx context.Context, m *Member, w ask) error {
	if err := s.room.check(s.cfg.Clock.Now(), w.bytes, w.frees); err != nil {
		s.books.forDisk.Add(1)
		s.books.diskFull.begin(s.cfg.Log, "writes are refused", "reason", err)
		return err
	}
	if !w.frees {
		s.books.diskFull.end(s.cfg.Log, "writes are taken again")
	}
	err := s.within(m, w)
	for limit := s.cfg.Clock.Now().Add(reliefFor); err != nil && !s.quota.spent.Load() && s.cfg.Clock.Now().Before(limit); err = s.within(m, w) {
		// It may be history that fills the quota, which is about to be forgotten.
		if err := s.cfg.Clock.Sleep(ctx, reliefLook); err != nil {
			return err
		}
	}
	if err != nil {
		s.books.forQuota.Add(1)
		s.books.overQuota.begin(s.cfg.Log, "writes are refused", "reason", err)
		return err
	}
	if !w.frees {
		s.books.overQuota.end(s.cfg.Log, "writes are taken again: the store is below its quota")
	}
	return nil
}

// within refuses a write over the quota, and calls for maintenance near it.
func (s *Seat) within(m *Member, w ask) error {
	now := s.cfg.Clock.Now()
	u := s.used(m, now)
	if s.quota.near(u) {
		s.quota.press(now)
	}
	if err := s.quota.check(u, w); err != nil {
		return err
	}
	s.quota.pending.add(now, w.bytes)
	return nil
}

// used is what the database takes, with what it has yet to write.
func (s *Seat) used(m *Member, now time.Time) usage {
	u := m.usage()
	u.inUse += s.quota.pending.add(now, 0)
	return u
}

// moving tells whether nothing keeps a write from being begun.
func (s *Seat) moving(m *Member) bool {
	now := s.cfg.Clock.Now()
	return !s.hold.on(now) && !s.pace.stalled(now, m.applied())
}

// heldBack waits for the disk, or the end of a hold, on behalf of a write that was not begun.
func (s *Seat) heldBack(ctx context.Context, m *Member) error {
	s.books.held.Add(1)
	defer s.books.held.Add(-1)
	if now := s.cfg.Clock.Now(); !s.hold.on(now) && (m.Solo() || s.pace.silence(now) > blameDisk) {
		s.books.waiting.begin(s.cfg.Log, "writes wait: none has reached the disk for a while", "dir", s.cfg.Dir)
	}
	err := s.flowing(ctx, m, queueFor)
	if errors.Is(err, ErrStalled) {
		s.books.forStall.Add(1)
	}
	return err
}

// flowing returns once the member's log moves again; limit 0 is none but ctx. The time of a hold does not count.
func (s *Seat) flowing(ctx context.Context, m *Member, limit time.Duration) error {
	begin := s.cfg.Clock.Now()
	for {
		now := s.cfg.Clock.Now()
		held := s.hold.on(now)
		if held {
			begin = now
		}
		switch {
		case m.Err() != nil:
			return m.translate(m.Err())
		case !held && !s.pace.stalled(now, m.applied()):
			return nil
		case m.Outage() != nil && limit > 0:
			return m.Outage()
		case m.Outage() != nil:
			if err := s.led(ctx, m); err != nil {
				return err
			}
		case limit > 0 && now.Sub(begin) >= limit:
			return fmt.Errorf("%w: no write has reached the disk for %s; look at the disk of %s", ErrStalled, s.pace.silence(now).Round(time.Second), s.cfg.Dir)
		}
		if err := s.cfg.Clock.Sleep(ctx, lookEvery); err != nil {
			return err
		}
	}
}
