package engine

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

// What becomes of a write whose answer was lost, and how the seat finds out. The facts it stands on:
//
//   - A revision is never given twice. A write that expects a revision can be done once at most, however often it is asked for, and what
//     became of it is told by the change that followed that revision.
//   - A member that is alone does what it was asked for in the order it was asked. Once a later request has been answered, an earlier one
//     is done or never will be.
//   - Among several members a request may lie somewhere and be done long after.
//   - A write that expects a key's absence, or nothing, could be done twice, before and after what somebody else did. It is repeated only
//     when it is certain that it was not done: among several members, never.
//   - Two clients may want to write the same bytes. That they are there does not say who of them wrote them, unless they hold something
//     made for one of them: Write.Own.

// ErrUnknown is returned when a write was begun and nobody knows whether it was done, or will be.
var ErrUnknown = errors.New("it is not known whether the write was done")

// fateFor is how long a write that was begun waits for a quorum that is lost before its outcome counts as unknown.
const fateFor = 3 * time.Second

// unknown marks the error of a write that was begun.
func unknown(err error) error {
	if errors.Is(err, ErrUnknown) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnknown, err)
}

// attempt is one write through a seat, from its first try to its outcome.
type attempt struct {
	seat  *Seat
	w     Write
	since int64 // the newest revision that anybody was told before the first try: an older change is not this write's
	twin  *twin
	// do gives the write to a member: Member.Txn.
	do func(*Member, context.Context, Write) (Result, error)
}

// run does the write. Only what is certain is returned as a Result, or as an error other than ErrUnknown.
func (a *attempt) run(ctx context.Context, m *Member) (Result, error) {
	res, err := a.do(m, ctx, a.w)
	begun := errors.Is(err, ErrUnknown)
	for retryable(err) && (begun || !errors.Is(err, ErrNoQuorum)) && ctx.Err() == nil {
		if m, err = a.seat.answering(ctx, m); err != nil {
			break
		}
		if err = supervision.CheckFence(ctx); err != nil {
			break
		}
		if begun && !a.repeatable() {
			if res, err = a.look(ctx, m); err != nil || res.Done {
				return res, err
			}
			begun, a.since = false, res.Revision
		}
		if res, err = a.do(m, ctx, a.w); err == nil && begun && !res.Done {
			return a.trace(ctx, m, res)
		}
		begun = begun || errors.Is(err, ErrUnknown)
	}
	if err != nil && begun {
		err = unknown(err)
	}
	return res, err
}

// retryable tells whether the member was not able to answer, rather than answered.
func retryable(err error) bool {
	return errors.Is(err, ErrUnknown) || errors.Is(err, ErrStalled) || errors.Is(err, ErrClosed)
}

// repeatable tells whether a second try does no harm if the first one was done, or is done after it.
func (a *attempt) repeatable() bool {
	for _, g := range a.w.Guards {
		if g.ModRevision == 0 {
			return false
		}
	}
	return a.w.Expect > 0
}

// look finds out what became of a write without repeating it. A Result that is not Done says that it was not, and will not be.
func (a *attempt) look(ctx context.Context, m *Member) (Result, error) {
	var res Result
	var err error
	if m.Solo() {
		// What is asked for now comes behind it in the log, and does nothing.
		res, err = a.do(m, ctx, Write{Key: a.w.Key, Expect: neverRevision, Delete: true})
	} else {
		res.Revision, err = m.Barrier(ctx)
	}
	if err != nil {
		return Result{}, unknown(err)
	}
	res, err = a.trace(ctx, m, res)
	if err == nil && !res.Done && !m.Solo() {
		err = unknown(errors.New("it may still be on its way"))
	}
	return res, err
}

// neverRevision as Write.Expect is a condition that does not hold.
const neverRevision = -2

// trace searches the history of the key for the write. res is the answer of a look that found it undone.
func (a *attempt) trace(ctx context.Context, m *Member, res Result) (Result, error) {
	changes, _, err := m.History(ctx, a.w.Key, a.w.Key+"\x00", a.since, res.Revision, traceLimit)
	if err != nil {
		return Result{}, unknown(err)
	}
	for _, c := range changes {
		if !a.follows(c) {
			continue
		}
		if a.same(c) {
			return a.claim(m, c)
		}
		if a.w.Expect > 0 {
			return res, nil // somebody else's change took its place
		}
	}
	if len(changes) >= traceLimit {
		return Result{}, unknown(errors.New("the key has changed too often since"))
	}
	return res, nil
}

// traceLimit bounds the changes of one key that are looked through.
const traceLimit = 10000

// follows tells whether the change was made in the state that the write expects.
func (a *attempt) follows(c Change) bool {
	switch {
	case a.w.Expect == AnyRevision:
		return true
	case a.w.Expect == 0:
		return c.Prev == nil && !c.Delete
	}
	return c.Prev != nil && c.Prev.ModRevision == a.w.Expect
}

// same tells whether the change is what the write asks for.
func (a *attempt) same(c Change) bool {
	if c.Delete != a.w.Delete {
		return false
	}
	return c.Delete || string(c.KV.Value) == string(a.w.Value)
}

// claim takes the change for the write's own, unless it can be somebody else's.
func (a *attempt) claim(m *Member, c Change) (Result, error) {
	if !a.w.Own && (!m.Solo() || a.twin.hasTwin()) {
		return Result{}, unknown(errors.New("another client may have written the same"))
	}
	return Result{Revision: c.KV.ModRevision, Done: true}, nil
}

// twins knows of writes that ask for the same and may be done at the same time.
type twins struct {
	mu   sync.Mutex
	now  int64 // counts writes
	told int64 // the newest revision of an answer
	open map[wish]*twin
	// ghosts are writes that were given up: they may be done until a later one has been answered.
	ghosts []*twin
}

// wish is what a write asks for.
type wish struct {
	key    string
	expect int64
	value  uint64 // hash
}

// twin is one write.
type twin struct {
	of         *twins
	wish       wish
	begun, end int64
	since      int64 // the newest revision that anybody was told before. The member is not asked: it would wait for its disk
	same       *twin // another write that asks for the same, begun before
	shared     bool
}

var seed = maphash.MakeSeed()

// begin notes a write; the caller calls done.
func (t *twins) begin(w Write) *twin {
	one := &twin{of: t, wish: wish{w.Key, w.Expect, 0}}
	if !w.Delete {
		one.wish.value = maphash.Bytes(seed, w.Value)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = map[wish]*twin{}
	}
	t.now++
	one.begun, one.since = t.now, t.told
	one.same = t.open[one.wish]
	for o := one.same; o != nil; o = o.same {
		o.shared, one.shared = true, true
	}
	t.open[one.wish] = one
	return one
}

// raise notes a revision that is known.
func (t *twins) raise(revision int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told = max(t.told, revision)
}

// done forgets a write that ended with err, and with it those that were given up before it began, when it was answered with a revision.
func (one *twin) done(revision int64, err error) {
	t := one.of
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now++
	one.end, t.told = t.now, max(t.told, revision)
	if errors.Is(err, ErrUnknown) {
		t.ghosts = append(t.ghosts, one)
		return
	}
	t.forget(one)
	for err == nil && len(t.ghosts) > 0 && t.ghosts[0].end < one.begun {
		t.forget(t.ghosts[0])
		t.ghosts = t.ghosts[1:]
	}
}

// forget takes a write out of those that may be done. The lock is held.
func (t *twins) forget(one *twin) {
	if t.open[one.wish] == one {
		if one.same == nil {
			delete(t.open, one.wish)
		} else {
			t.open[one.wish] = one.same
		}
		return
	}
	for o := t.open[one.wish]; o != nil; o = o.same {
		if o.same == one {
			o.same = one.same
		}
	}
}

// hasTwin tells whether another write may have done what this one asked for.
func (one *twin) hasTwin() bool {
	one.of.mu.Lock()
	defer one.of.mu.Unlock()
	return one.shared
}

// led returns once the members have a leader, or the outage after a while.
func (s *Seat) led(ctx context.Context, m *Member) error {
	begin := s.cfg.Clock.Now()
	for {
		switch o := m.Outage(); {
		case m.Err() != nil:
			return m.translate(m.Err())
		case o == nil:
			return nil
		case s.cfg.Clock.Now().Sub(begin) >= fateFor:
			return o
		}
		if err := s.cfg.Clock.Sleep(ctx, lookEvery); err != nil {
			return err
		}
	}
}
