package engine

import (
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// historyFor is how long a read of history may go without an answer.
const historyFor = 20 * time.Second

// History implements Engine. It is a watch in the past that ends when it has passed upto, or its progress has.
func (e *External) History(ctx context.Context, from, to string, after, upto int64, limit int) ([]Change, int64, error) {
	if after >= upto {
		return nil, after, nil
	}
	if err := e.reachable(ctx); err != nil {
		return nil, after, err
	}
	limited, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), historyFor)
	defer cancel()
	h := &past{engine: e, ctx: limited, after: after, upto: upto, reached: after, limit: limit}
	if err := h.read(from, to); err != nil {
		return nil, after, translateRemote(ctx, err)
	}
	return h.changes, h.reached, nil
}

// past is one read of history.
type past struct {
	engine  *External
	ctx     context.Context
	watcher clientv3.Watcher
	after   int64
	upto    int64
	limit   int
	changes []Change
	reached int64
}

func (h *past) read(from, to string) error {
	h.watcher = clientv3.NewWatcher(h.engine.client)
	defer func() { _ = h.watcher.Close() }()
	answers := h.watcher.Watch(h.ctx, from, clientv3.WithRange(to), clientv3.WithRev(h.after+1), clientv3.WithPrevKV(), clientv3.WithFragment(), clientv3.WithCreatedNotify())
	ask := make(chan struct{}, 1)
	cancel := func() bool { return false }
	defer func() { cancel() }()
	for {
		select {
		case resp, ok := <-answers:
			if !ok {
				return errWatchEnded
			}
			if done, err := h.take(resp); done || err != nil {
				return err
			}
			if resp.Created {
				token(ask)
			}
		case <-ask:
			if err := h.watcher.RequestProgress(h.ctx); err != nil {
				return err
			}
			cancel = h.engine.cfg.Clock.AfterFunc(progressAgain, func() { token(ask) })
		case <-h.ctx.Done():
			return h.ctx.Err()
		}
	}
}

// take adds an answer; done when there is enough.
func (h *past) take(resp clientv3.WatchResponse) (done bool, err error) {
	switch {
	case resp.CompactRevision != 0:
		raise(&h.engine.compactedTo, resp.CompactRevision)
		return false, ErrCompacted
	case resp.Err() != nil:
		return false, resp.Err()
	case resp.IsProgressNotify() && resp.Header.GetRevision() >= h.upto:
		h.reached = h.upto
		return true, nil
	}
	for _, ev := range resp.Events {
		if ev.Kv.ModRevision > h.upto {
			h.reached = h.upto
			return true, nil
		}
		c := Change{Delete: ev.Type == mvccpb.Event_DELETE, KV: fromKV(ev.Kv)}
		if ev.PrevKv != nil {
			kv := fromKV(ev.PrevKv)
			c.Prev = &kv
		} else if c.Delete || c.KV.Version > 1 {
			// What it replaced has been forgotten, so the change cannot be told.
			return false, ErrCompacted
		}
		h.changes, h.reached = append(h.changes, c), c.KV.ModRevision
	}
	return len(h.changes) >= h.limit, nil
}
