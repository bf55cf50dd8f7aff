package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nodeactor/nodeactor/store/engine"
	"github.com/nodeactor/nodeactor/supervision"
)

const (
	// maintainEvery is the time between two calls of Maintain; a store that was not written to is left alone.
	maintainEvery = 5 * time.Minute
	// relieveEvery is the time between two calls of Relieve while the quota is spent, relieveRest how much longer than a call took, at
	// least, nothing is done after it.
	relieveEvery = 400 * time.Millisecond
	relieveRest  = 2
	// relieveShare of the quota, as its divisor, must have been filled since the last time for history to be forgotten early.
	relieveShare = 50
	// keepBehind is the number of revisions of history that Maintain keeps however old they are, or as many as a share (here its divisor) of
	// the number of objects where that is less, but keepLeast.
	keepBehind = 1000
	keepShare  = 8
	keepLeast  = 100
	// settleFor is how long one call waits for the space of forgotten history to be free.
	settleFor = 15 * time.Second
)

// upkeep is what is remembered from one call of maintenance to the next. It is guarded by Store.compactMu.
type upkeep struct {
	clock   supervision.Clock // that of the store; it is not guarded
	due     time.Time         // when Maintain is to be called next
	marked  int64             // revision at the last Maintain
	pressed int64             // revision at the last Relieve
	// relieved is when the last Relieve that did something ended, took how long it was at it, inUse what was in use then.
	relieved time.Time
	took     time.Duration
	inUse    int64
	full     bool // the last Relieve has left the quota spent
	rewrites rewrites
}

// Tend does what is due: Maintain every five minutes, Relieve when the quota presses.
func (s *Store) Tend(ctx context.Context) error {
	if now := s.upkeep.clock.Now(); !now.Before(s.due()) {
		s.setDue(now.Add(maintainEvery))
		return s.Maintain(ctx)
	}
	return s.Relieve(ctx)
}

func (s *Store) due() time.Time {
	s.compactMu.Lock()
	defer s.compactMu.Unlock()
	return s.upkeep.due
}

func (s *Store) setDue(t time.Time) {
	s.compactMu.Lock()
	defer s.compactMu.Unlock()
	s.upkeep.due = t
}

// AwaitDue returns when something is due for Tend, or ctx ends.
func (s *Store) AwaitDue(ctx context.Context) error {
	wait := s.due().Sub(s.upkeep.clock.Now())
	var pressed <-chan struct{}
	if s.engine != nil {
		pressed = s.engine.Pressed()
		if s.engine.Need() >= engine.Bloated {
			wait = min(wait, relieveEvery)
		}
	}
	if wait <= 0 {
		return ctx.Err()
	}
	over := make(chan struct{})
	stop := s.upkeep.clock.AfterFunc(wait, func() { close(over) })
	defer stop()
	select {
	case <-over:
	case <-pressed:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// Maintain forgets history: all but the newest revisions from before the last call. It then makes the file smaller if most of it is holes
// and the moment is good. It writes nothing when nothing was written since, so a supervised child may call it every few minutes.
func (s *Store) Maintain(ctx context.Context) error {
	s.compactMu.Lock()
	defer s.compactMu.Unlock()
	now := s.index.Revision()
	target := min(s.upkeep.marked, now-s.keep())
	s.upkeep.marked = now
	if err := s.compactTo(ctx, target); err != nil {
		return err
	}
	if err := s.reclaim(ctx); err != nil {
		return err
	}
	s.tended.Store(s.upkeep.clock.Now().UnixNano())
	return nil
}

// keep is how many revisions stay however old they are.
func (s *Store) keep() int64 {
	objects := int64(0)
	for _, size := range s.index.Sizes() {
		objects += size.Objects
	}
	return min(keepBehind, max(keepLeast, objects/keepShare))
}

// Relieve forgets all history but that of the last moment, if the quota is nearly spent and that gains something. It is called oftener
// than Maintain, so that a store that is full takes writes again as soon as something was deleted.
func (s *Store) Relieve(ctx context.Context) error {
	s.compactMu.Lock()
	defer s.compactMu.Unlock()
	if s.engine == nil {
		return nil
	}
	if !s.gains() {
		if s.engine.Need() != engine.Full {
			s.judge()
		}
		return nil
	}
	begin := s.upkeep.clock.Now()
	target := max(s.upkeep.pressed, s.upkeep.marked)
	s.upkeep.pressed = s.index.Revision()
	err := s.compactTo(ctx, target)
	if err == nil {
		err = s.reclaim(ctx)
	}
	s.upkeep.relieved = s.upkeep.clock.Now()
	s.upkeep.took = s.upkeep.relieved.Sub(begin)
	s.upkeep.inUse = s.engine.Stats().DBInUse
	s.judge()
	return err
}

// judge tells the engine that what is stored fills the quota once two calls in a row have not helped: the second has forgotten what the
// first had found.
func (s *Store) judge() {
	full := s.engine.Need() == engine.Full
	s.engine.Judge(full && s.upkeep.full)
	s.upkeep.full = full
}

// gains tells whether to forget history early.
func (s *Store) gains() bool {
	u, now := &s.upkeep, s.upkeep.clock.Now()
	if now.Sub(u.relieved) < relieveRest*u.took {
		return false
	}
	switch s.engine.Need() {
	case engine.Full, engine.Bloated:
		return true
	case engine.Near:
		st := s.engine.Stats()
		return s.index.Revision() > u.pressed && st.DBInUse-u.inUse >= st.Quota/relieveShare
	}
	return false
}

// reclaim makes use of what was forgotten.
func (s *Store) reclaim(ctx context.Context) error {
	if s.engine == nil {
		return nil
	}
	settled, err := s.settle(ctx)
	if err != nil {
		return fmt.Errorf("cannot free the space of forgotten history: %w", err)
	}
	if !settled {
		return nil
	}
	if err := s.rewrite(ctx); err != nil {
		return err
	}
	disarmed, err := s.engine.Disarm(ctx)
	if disarmed {
		s.cfg.Log.Info("the alarm of a spent quota was ended: there is room again", "dir", s.cfg.Dir)
	}
	return err
}

// settle waits for the space of forgotten history to be free; false when it takes longer: then it goes on by itself.
func (s *Store) settle(ctx context.Context) (bool, error) {
	limited, cancel := context.WithTimeout(ctx, settleFor)
	defer cancel()
	have, compacted := s.settled.Load(), s.compacted.Load()
	var err error
	switch {
	case have < compacted:
		err = s.engine.Settle(limited, compacted)
	case have == 0:
		compacted, err = s.engine.Forgotten(limited)
	default:
		return true, nil
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return false, nil
	}
	if err == nil {
		s.settled.Store(compacted)
	}
	return err == nil, err
}

// Passes tells whether an error of the store is of the moment: its disk is slow or full, or its engine is being opened anew.
func Passes(err error) bool {
	for _, passing := range []error{ErrStalled, ErrNoSpace, ErrAway, ErrClosed, engine.ErrClosed} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// CompactTo forgets history before revision at once.
func (s *Store) CompactTo(ctx context.Context, revision int64) error {
	s.compactMu.Lock()
	defer s.compactMu.Unlock()
	return s.compactTo(ctx, revision)
}

// compactTo is content when another member has forgotten more.
func (s *Store) compactTo(ctx context.Context, revision int64) error {
	if revision <= max(1, s.compacted.Load()) {
		return nil
	}
	if err := s.host.Compact(ctx, revision); err != nil && !errors.Is(err, engine.ErrCompacted) {
		return fmt.Errorf("cannot compact store to %d: %w", revision, err)
	}
	revision = s.forgotten(revision)
	s.compacted.Store(revision)
	s.index.Forget(revision)
	return nil
}

// CompactRevision is the revision to which this process last compacted; 0 = it has not.
func (s *Store) CompactRevision() int64 { return s.compacted.Load() }

// Refusal is why a write that needs room would be refused now, or nil: the store or its disk is full, its disk does not answer, or its
// engine is being opened anew.
func (s *Store) Refusal() error {
	if s.engine != nil {
		return s.engine.Refusal()
	}
	if e, ok := s.host.(*engine.External); ok {
		return e.Refusal()
	}
	return s.host.Err()
}

// Snapshot writes a consistent copy of the engine's database to w: a file that etcd's own tools can restore.
func (s *Store) Snapshot(ctx context.Context, w io.Writer) error { return s.host.Snapshot(ctx, w) }
