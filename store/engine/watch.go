package engine

import (
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

// progressEvery is how often a reader of history asks whether it has seen everything.
const progressEvery = 5 * time.Millisecond

// Watch implements Engine.
func (m *Member) Watch(ctx context.Context, from, to string, after int64, f func(Batch) error) error {
	stream := m.server.Watchable().NewWatchStream()
	defer stream.Close()
	if _, err := stream.Watch(ctx, 0, []byte(from), rangeEnd(to), after+1); err != nil {
		return m.translate(err)
	}
	for {
		select {
		case resp, ok := <-stream.Chan():
			if !ok {
				return ErrClosed
			}
			if resp.CompactRevision != 0 {
				return ErrCompacted
			}
			m.seen.note(resp.Revision)
			if err := f(fromResponse(resp)); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-m.failed.ch:
			return m.translate(m.failed.err)
		case <-m.server.StopNotify():
			return ErrClosed
		}
	}
}

// rangeEnd is the library's form of the end of a range.
func rangeEnd(to string) []byte {
	if to == Last {
		return []byte{}
	}
	return []byte(to)
}

// fromResponse leaves out the revision of a response that has events: a watcher that lags is told of the newest one long before it has
// seen everything up to there.
func fromResponse(resp mvcc.WatchResponse) Batch {
	b := Batch{Revision: resp.Revision, Changes: make([]Change, len(resp.Events))}
	for i, ev := range resp.Events {
		b.Changes[i] = Change{Delete: ev.Type == mvccpb.Event_DELETE, KV: fromKV(ev.Kv)}
		b.Revision = ev.Kv.ModRevision
	}
	return b
}

// History implements Engine. It is a watch in the past that ends when the watcher has caught up with the present.
func (m *Member) History(ctx context.Context, from, to string, after, upto int64, limit int) ([]Change, int64, error) {
	stream := m.server.Watchable().NewWatchStream()
	defer stream.Close()
	if after >= upto {
		return nil, after, nil
	}
	id, err := stream.Watch(ctx, 0, []byte(from), rangeEnd(to), after+1)
	if err != nil {
		return nil, after, m.translate(err)
	}
	changes, reached, err := m.collect(ctx, stream, id, after, upto, limit)
	if err != nil {
		return nil, after, err
	}
	return changes, reached, m.fillPrevious(ctx, changes)
}

func (m *Member) collect(ctx context.Context, stream mvcc.WatchStream, id mvcc.WatchID, after, upto int64, limit int) ([]Change, int64, error) {
	ask := make(chan struct{}, 1)
	defer m.askLater(ask)()
	reached := after
	var changes []Change
	for {
		select {
		case resp, ok := <-stream.Chan():
			switch {
			case !ok:
				return nil, after, ErrClosed
			case resp.CompactRevision != 0:
				return nil, after, ErrCompacted
			case len(resp.Events) == 0 && resp.Revision >= upto:
				return changes, upto, nil
			}
			for _, c := range fromResponse(resp).Changes {
				if c.KV.ModRevision > upto {
					return changes, upto, nil
				}
				changes, reached = append(changes, c), c.KV.ModRevision
			}
			if len(changes) >= limit {
				return changes, reached, nil
			}
		case <-ask:
			stream.RequestProgress(id)
			defer m.askLater(ask)()
		case <-ctx.Done():
			return nil, after, ctx.Err()
		case <-m.failed.ch:
			return nil, after, m.translate(m.failed.err)
		}
	}
}

// askLater sends to ask after progressEvery, unless cancelled.
func (m *Member) askLater(ask chan<- struct{}) (cancel func() bool) {
	return m.clock.AfterFunc(progressEvery, func() { ask <- struct{}{} })
}

// fillPrevious looks up what each change replaced: the change before it in the same run, or the engine one revision earlier.
func (m *Member) fillPrevious(ctx context.Context, changes []Change) error {
	last := map[string]*KV{}
	for i := range changes {
		c := &changes[i]
		prev, seen := last[c.KV.Key]
		if !seen && (c.Delete || c.KV.Version > 1) {
			page, err := m.Range(ctx, c.KV.Key, "", c.KV.ModRevision-1, 1)
			if err != nil {
				return err
			}
			if len(page.KVs) > 0 {
				prev = &page.KVs[0]
			}
		}
		c.Prev = prev
		last[c.KV.Key] = nil
		if !c.Delete {
			last[c.KV.Key] = &c.KV
		}
	}
	return nil
}

// compacted is the oldest revision still kept, as far as this member has been told to forget.
func (m *Member) compacted() int64 { return m.compactedTo.Load() }
