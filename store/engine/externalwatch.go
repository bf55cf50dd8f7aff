package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// progressAfter is how long a revision that a reader waits for may take to come with a change of its own.
	progressAfter = 10 * time.Millisecond
	// progressAgain is the time between two questions how far a watch is.
	progressAgain = 50 * time.Millisecond
)

// errWatchEnded is returned when the library has given a watch up.
var errWatchEnded = errors.New("the watch has ended")

// stopped is what the receiver of changes has returned.
type stopped struct{ error }

func (s stopped) Unwrap() error { return s.error }

// Follow implements Life. It goes on over lost connections and members, from where it was.
func (t *tie) Follow(ctx context.Context, prefix string, after int64, f func(Batch) error) error {
	t.followed.Store(after)
	return t.resume(ctx, &watch{from: prefix, opts: []clientv3.OpOption{clientv3.WithPrefix()}, at: &t.followed, ask: t.ask, f: f})
}

// Watch implements Engine.
func (e *External) Watch(ctx context.Context, from, to string, after int64, f func(Batch) error) error {
	t, err := e.current()
	if err != nil {
		return err
	}
	var at atomic.Int64
	at.Store(after)
	return t.resume(ctx, &watch{from: from, opts: []clientv3.OpOption{clientv3.WithRange(to)}, at: &at, f: f})
}

// watch is what to hand out, and how far that has been done.
type watch struct {
	from string
	opts []clientv3.OpOption
	at   *atomic.Int64
	ask  <-chan struct{}
	f    func(Batch) error
}

// resume keeps a watch going until ctx or the life ends, its receiver fails, or there is a gap.
func (t *tie) resume(ctx context.Context, w *watch) error {
	for {
		err := t.stretch(ctx, w)
		var own stopped
		switch {
		case t.Err() != nil:
			return t.Err()
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrCompacted):
			return err
		case errors.As(err, &own):
			return own.error
		}
		t.cfg.Log.Debug("the watch of the store is begun again", "after", w.at.Load(), "reason", err)
		if err := t.cfg.Clock.Sleep(ctx, againAfter); err != nil {
			return err
		}
	}
}

// stretch watches over one stream of its own. A member without a leader must not go on as if nothing happened.
func (t *tie) stretch(ctx context.Context, w *watch) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	watcher := clientv3.NewWatcher(t.client)
	defer func() { _ = watcher.Close() }()
	opts := append([]clientv3.OpOption{clientv3.WithRev(w.at.Load() + 1), clientv3.WithFragment(), clientv3.WithProgressNotify()}, w.opts...)
	changes := watcher.Watch(ctx, w.from, opts...)
	for {
		select {
		case resp, ok := <-changes:
			if !ok {
				return errWatchEnded
			}
			if err := t.hand(w, resp); err != nil {
				return err
			}
		case <-w.ask:
			if err := watcher.RequestProgress(ctx); err != nil {
				return err
			}
		case <-t.failed.ch:
			return t.failed.err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// hand gives one response to the receiver.
func (t *tie) hand(w *watch, resp clientv3.WatchResponse) error {
	if resp.CompactRevision != 0 {
		raise(&t.compactedTo, resp.CompactRevision)
		return ErrCompacted
	}
	if err := resp.Err(); err != nil {
		return err
	}
	if err := t.observe(resp.Header); err != nil {
		return err
	}
	if resp.Created {
		return nil
	}
	b := fromRemote(resp)
	if b.Revision <= w.at.Load() {
		return nil
	}
	w.at.Store(b.Revision)
	if err := w.f(b); err != nil {
		return stopped{err}
	}
	return nil
}

// fromRemote leaves out the revision of a response that has events, as fromResponse does. One without says how far the watch is.
func fromRemote(resp clientv3.WatchResponse) Batch {
	b := Batch{Revision: resp.Header.GetRevision(), Changes: make([]Change, len(resp.Events))}
	for i, ev := range resp.Events {
		b.Changes[i] = Change{Delete: ev.Type == mvccpb.Event_DELETE, KV: fromKV(ev.Kv)}
		b.Revision = ev.Kv.ModRevision
	}
	return b
}

// want sees to it that the watch passes a revision, which may be of a key that is not followed.
func (t *tie) want(rev int64) {
	raise(&t.wanted, rev)
	t.arm(progressAfter)
}

func (t *tie) arm(after time.Duration) {
	if t.followed.Load() < t.wanted.Load() && t.Err() == nil && t.armed.CompareAndSwap(false, true) {
		t.cfg.Clock.AfterFunc(after, t.nudge)
	}
}

func (t *tie) nudge() {
	t.armed.Store(false)
	if t.followed.Load() >= t.wanted.Load() {
		return
	}
	token(t.ask)
	t.arm(progressAgain)
}

// token puts a token into ch unless it has one.
func token(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
