package engine

import (
	"context"
	"errors"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/nodeactor/nodeactor/supervision"
)

// Txn implements Engine. What became of a write whose try was cut off is found out by repeating it, for some seconds, where that does no
// harm: when it expects a revision, which it can replace once at most. Every other one fails with ErrUnknown; see fate.go.
func (e *External) Txn(ctx context.Context, w Write) (Result, error) {
	if err := e.admit(ctx, w); err != nil {
		return Result{}, err
	}
	res, err := e.try(ctx, w)
	if err == nil || !cutOff(err) {
		return res, err
	}
	if !(&attempt{w: w}).repeatable() {
		return Result{}, unknown(err)
	}
	for begin := e.cfg.Clock.Now(); cutOff(err) && e.cfg.Clock.Now().Sub(begin) < outcomeFor; {
		if again := errors.Join(e.cfg.Clock.Sleep(ctx, againAfter), supervision.CheckFence(ctx)); again != nil {
			return Result{}, unknown(again)
		}
		res, err = e.try(ctx, w)
	}
	switch {
	case err != nil:
		return Result{}, unknown(err)
	case res.Done:
		return res, nil
	}
	return e.trace(ctx, w, res)
}

// cutOff tells whether a try may have been done although it failed.
func cutOff(err error) bool {
	return errors.Is(err, ErrAway) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// trace looks whose change has replaced the revision that a repeated write expects: if it is like the write's own it may be its first try's.
func (e *External) trace(ctx context.Context, w Write, res Result) (Result, error) {
	changes, _, err := e.History(ctx, w.Key, w.Key+"\x00", w.Expect, res.Revision, traceLimit)
	if err != nil {
		return Result{}, unknown(err)
	}
	a := &attempt{w: w}
	for _, c := range changes {
		if a.follows(c) && a.same(c) {
			return Result{}, unknown(errors.New("another client may have written the same"))
		}
	}
	return res, nil
}

// admit refuses a write that is not begun.
func (e *External) admit(ctx context.Context, w Write) error {
	if _, err := e.current(); err != nil {
		return err
	}
	if len(w.Value) > maxValueBytes {
		return ErrTooLarge
	}
	if err := supervision.CheckFence(ctx); err != nil {
		return err
	}
	if err := e.reach.wait(ctx); err != nil {
		return err
	}
	return supervision.CheckFence(ctx)
}

// try makes one transaction.
func (e *External) try(ctx context.Context, w Write) (Result, error) {
	limited, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	resp, err := e.client.Txn(limited).If(conditions(w)...).Then(operation(w)).Else(clientv3.OpGet(w.Key)).Commit()
	if err != nil {
		return Result{}, translateRemote(ctx, err)
	}
	if err := e.observe(resp.Header); err != nil {
		return Result{}, err
	}
	if t := e.life.Load(); t != nil {
		t.want(resp.Header.GetRevision()) // the writer waits for it, and of a write that was not done it is anybody's
	}
	return resultOf((*pb.TxnResponse)(resp)), nil
}

func conditions(w Write) (all []clientv3.Cmp) {
	if w.Expect != AnyRevision {
		all = append(all, clientv3.Compare(clientv3.ModRevision(w.Key), "=", w.Expect))
	}
	for _, g := range w.Guards {
		all = append(all, clientv3.Compare(clientv3.ModRevision(g.Key), "=", g.ModRevision))
	}
	return all
}

func operation(w Write) clientv3.Op {
	if w.Delete {
		return clientv3.OpDelete(w.Key)
	}
	return clientv3.OpPut(w.Key, string(w.Value), clientv3.WithLease(clientv3.LeaseID(w.Lease)))
}

// Grant implements Engine.
func (e *External) Grant(ctx context.Context, ttl int64) (int64, error) {
	if err := e.admit(ctx, Write{}); err != nil {
		return 0, err
	}
	limited, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	resp, err := e.client.Grant(limited, ttl)
	if err != nil {
		return 0, fmt.Errorf("cannot grant lease: %w", translateRemote(ctx, err))
	}
	return int64(resp.ID), nil
}
