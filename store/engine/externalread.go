package engine

import (
	"context"
	"fmt"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// barrierKey is read to learn the newest revision. It lies where the objects do, so that a client that may use only those may read it.
const barrierKey = "/registry/nodeactor-barrier"

// Range implements Engine. It is linearizable.
func (e *External) Range(ctx context.Context, from, to string, revision, limit int64) (Page, error) {
	if err := e.reachable(ctx); err != nil {
		return Page{}, err
	}
	opts := []clientv3.OpOption{clientv3.WithRev(revision), clientv3.WithLimit(limit)}
	if to != "" {
		opts = append(opts, clientv3.WithRange(to))
	}
	resp, err := e.client.Get(ctx, from, opts...)
	if err != nil {
		return Page{}, translateRemote(ctx, err)
	}
	if err := e.observe(resp.Header); err != nil {
		return Page{}, err
	}
	page := Page{Count: resp.Count, Revision: resp.Header.GetRevision(), KVs: make([]KV, len(resp.Kvs))}
	for i, kv := range resp.Kvs {
		page.KVs[i] = fromKV(kv)
	}
	return page, nil
}

// reachable says why the cluster is not to be asked.
func (e *External) reachable(ctx context.Context) error {
	if _, err := e.current(); err != nil {
		return err
	}
	return e.reach.wait(ctx)
}

// Barrier implements Engine. Readers that come at the same time share one question. It also asks for the watch's progress, as what it
// returns may be a revision of something that is not followed.
func (e *External) Barrier(ctx context.Context) (int64, error) {
	t, err := e.current()
	if err != nil {
		return 0, err
	}
	if err := e.reach.wait(ctx); err != nil {
		return 0, err
	}
	rev, err := e.reads.do(ctx, e)
	if err != nil {
		return 0, err
	}
	t.want(rev)
	return rev, nil
}

// linearizable asks the cluster for its newest revision.
func (e *External) linearizable(ctx context.Context) (int64, error) {
	before := e.seen.Load()
	resp, err := e.client.Get(ctx, barrierKey, clientv3.WithKeysOnly())
	if err != nil {
		return 0, translateRemote(ctx, err)
	}
	if err := e.observe(resp.Header); err != nil {
		return 0, err
	}
	rev := resp.Header.GetRevision()
	if rev < before {
		err := fmt.Errorf("%w: it has gone back from revision %d to %d; was it restored from a snapshot without raising its revision?", ErrDamaged, before, rev)
		if t := e.life.Load(); t != nil {
			t.Fail(err)
		}
		return 0, err
	}
	return rev, nil
}

// sharedReads lets callers share a read that begins after they came.
type sharedReads struct {
	read func(context.Context) (int64, error)

	mu      sync.Mutex
	next    *flight
	running bool
}

type flight struct {
	done chan struct{}
	rev  int64
	err  error
}

func (s *sharedReads) do(ctx context.Context, e *External) (int64, error) {
	f, start := s.join()
	if start {
		e.group.Go("read barrier", s.run, s.abandon)
	}
	select {
	case <-f.done:
		return f.rev, f.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// join returns the flight that begins next, and whether the caller has to see to it that it does.
func (s *sharedReads) join() (f *flight, start bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = &flight{done: make(chan struct{})}
	}
	start = !s.running
	s.running = true
	return s.next, start
}

// run flies until nobody waits.
func (s *sharedReads) run(ctx context.Context) error {
	for f := s.take(); f != nil; f = s.take() {
		limited, cancel := context.WithTimeout(ctx, callFor)
		f.rev, f.err = s.read(limited)
		cancel()
		if f.err != nil && limited.Err() != nil {
			f.err = fmt.Errorf("%w: no answer within %s", ErrAway, callFor)
		}
		close(f.done)
	}
	return nil
}

func (s *sharedReads) take() *flight {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.next
	s.next = nil
	s.running = f != nil
	return f
}

// abandon lets go of who waits for a flight that will not be: the engine is closed.
func (s *sharedReads) abandon(err error) {
	if err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running = false; s.next != nil {
		s.next.err = fmt.Errorf("%w: %w", ErrClosed, err)
		close(s.next.done)
		s.next = nil
	}
}
