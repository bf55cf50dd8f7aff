package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc"
)

// TestHeldWritesAreNoStall: while the database is rewritten writes wait for longer than a stalled disk would be borne, and are done then;
// nobody takes it for a stall.
func TestHeldWritesAreNoStall(t *testing.T) {
	s := seatAt(t, t.TempDir())
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	m := s.member.Load()
	const rewrite = 2 * stallAfter
	begin := s.cfg.Clock.Now()
	s.pace.begin(begin, m.applied()) // a write that the rewrite has caught
	s.hold.begin(begin, time.Minute)
	time.AfterFunc(rewrite, func() { s.resume(m, begin) })
	if err := s.Refusal(); err != nil {
		t.Errorf("during a rewrite the store says %v", err)
	}
	res, err := s.Txn(ctx, Write{Key: "/a", Value: []byte("1")})
	if err != nil || !res.Done || time.Since(begin) < rewrite {
		t.Errorf("after %s: %+v, %v", time.Since(begin), res, err)
	}
	if n := s.books.forStall.Load(); n > 0 || s.books.waiting.on.Load() {
		t.Errorf("%d writes were refused for a stall", n)
	}
}

// TestOverdueHoldIsAStall: a rewrite that takes longer than it may is treated as the stalled disk that it waits for.
func TestOverdueHoldIsAStall(t *testing.T) {
	s := seatAt(t, t.TempDir())
	m := s.member.Load()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var err error
	for !errors.Is(err, ErrStalled) && ctx.Err() == nil { // the member's own first entries may move the log meanwhile
		now := s.cfg.Clock.Now()
		s.pace.reset()
		s.pace.begin(now.Add(-2*stallAfter), m.applied())
		s.hold.begin(now, 100*time.Millisecond)
		err = s.flowing(ctx, m, 200*time.Millisecond)
	}
	if ctx.Err() != nil {
		t.Errorf("got %v", err)
	}
}

// TestNoRewriteAmidACopy: a copy of the database keeps the rewrite, and with it the writes, from waiting for whoever reads it.
func TestNoRewriteAmidACopy(t *testing.T) {
	s := seatAt(t, t.TempDir())
	err := s.member.Load().countCopies(nil, nil, &grpc.StreamServerInfo{FullMethod: copyCall}, func(any, grpc.ServerStream) error {
		_, err := s.Defragment(context.Background())
		return err
	})
	if !errors.Is(err, ErrBusy) {
		t.Errorf("amid a copy: %v", err)
	}
	if _, err := s.Defragment(context.Background()); err != nil {
		t.Errorf("after it: %v", err)
	}
}
