package engine

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/nodeactor/nodeactor/supervision"
)

// Txn implements Engine. A conditional write whose try was cut off is repeated until its outcome is known, for some seconds: its condition
// recognises what the first try left. One without a condition is not repeated.
func (e *External) Txn(ctx context.Context, w Write) (Result, error) {
	if err := e.admit(ctx, w); err != nil {
		return Result{}, err
	}
	begin := e.cfg.Clock.Now()
	res, err := e.try(ctx, w)
	for errors.Is(err, ErrAway) && w.Expect != AnyRevision && e.cfg.Clock.Now().Sub(begin) < outcomeFor {
		if again := e.cfg.Clock.Sleep(ctx, againAfter); again != nil {
			return Result{}, again
		}
		if fenced := supervision.CheckFence(ctx); fenced != nil {
			return Result{}, fenced
		}
		if res, err = e.try(ctx, w); err == nil {
			res = res.recognise(w)
		}
	}
	return res, err
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
	res := Result{Revision: resp.Header.GetRevision(), Done: resp.Succeeded}
	if !res.Done {
		if kvs := resp.Responses[0].GetResponseRange().GetKvs(); len(kvs) > 0 {
			kv := fromKV(kvs[0])
			res.Current = &kv
		}
	}
	return res, nil
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
