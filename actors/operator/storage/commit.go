package storage

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// errBroken is returned when a transaction ended without saying how.
var errBroken = errors.New("the transaction was broken off")

// committer does the writes of many in one transaction, so that they share one wait for the disk: while one transaction is on its way, the
// writes that come queue, and whoever of them gets the turn commits them all. It has no goroutine of its own.
type committer struct {
	back      backend
	committed func(changed []string, at Revision)
	// turn holds a token while somebody commits.
	turn chan struct{}

	mu    sync.Mutex
	queue []*pending
}

// pending is a write that waits; err is set when done is closed.
type pending struct {
	write func(*txn) error
	done  chan struct{}
	err   error
}

func newCommitter(b backend, committed func([]string, Revision)) writer {
	return &committer{back: b, committed: committed, turn: make(chan struct{}, 1)}
}

// do implements writer. When ctx ends first, the write is withdrawn if it has not begun; otherwise its outcome is open.
func (c *committer) do(ctx context.Context, write func(*txn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p := &pending{write: write, done: make(chan struct{})}
	c.mu.Lock()
	c.queue = append(c.queue, p)
	c.mu.Unlock()
	select {
	case c.turn <- struct{}{}:
		c.lead(p)
	case <-p.done:
	case <-ctx.Done():
		c.withdraw(p)
		return ctx.Err()
	}
	return p.err
}

// lead commits until a write of one's own is done; then others have the turn.
func (c *committer) lead(own *pending) {
	defer func() { <-c.turn }()
	for {
		select {
		case <-own.done:
			return
		default:
			c.commit(c.take())
		}
	}
}

func (c *committer) take() []*pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(len(c.queue), togetherMost)
	some := slices.Clone(c.queue[:n])
	c.queue = slices.Delete(c.queue, 0, n)
	return some
}

func (c *committer) withdraw(p *pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.queue, p); i >= 0 {
		c.queue = slices.Delete(c.queue, i, i+1)
	}
}

// commit does some writes. Where one of many breaks the transaction, each is tried by itself.
func (c *committer) commit(some []*pending) {
	err := errBroken
	defer func() {
		if err != nil && len(some) > 1 {
			for _, p := range slices.Backward(some) {
				defer c.commit([]*pending{p}) // also when one before it panics; they run in their order
			}
			return
		}
		for _, p := range some {
			p.err = err
			close(p.done)
		}
	}()
	writes := make([]func(*txn) error, len(some))
	for i, p := range some {
		writes[i] = p.write
	}
	var changed []string
	var at Revision
	changed, at, err = run(c.back, writes)
	if err == nil {
		c.committed(changed, at)
	}
}
