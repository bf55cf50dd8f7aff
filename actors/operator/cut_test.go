package operator_test

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/nodeactor/nodeactor/actors/operator/storage"
	"github.com/nodeactor/nodeactor/cluster/lease"
)

// errCut is what a process gets whose way to the store is cut.
var errCut = errors.New("no way to the store")

// line is a process's way to the store, which can be cut: then it neither asks nor hears anything.
type line struct {
	storage.Store
	cut atomic.Bool
	// lose makes feeds of manifests lose their place when they are taken from.
	lose atomic.Bool
	// notify are told when the way is there again: there may be something to take.
	notify []func()
}

// set cuts the way, or mends it.
func (l *line) set(cut bool) {
	if l.cut.Swap(cut); !cut {
		for _, notify := range l.notify {
			notify()
		}
	}
}

func (l *line) way() error {
	if l.cut.Load() {
		return errCut
	}
	return nil
}

func (l *line) GetObject(ctx context.Context, id storage.ID) (storage.Object, error) {
	if err := l.way(); err != nil {
		return storage.Object{}, err
	}
	return l.Store.GetObject(ctx, id)
}

func (l *line) ListObjects(ctx context.Context, kind string, visit func(storage.Object) bool) (storage.Revision, error) {
	if err := l.way(); err != nil {
		return 0, err
	}
	return l.Store.ListObjects(ctx, kind, visit)
}

func (l *line) Write(ctx context.Context, w storage.Write) (storage.Revision, error) {
	if err := l.way(); err != nil {
		return 0, err
	}
	return l.Store.Write(ctx, w)
}

func (l *line) Lease(ctx context.Context, manifest string) (lease.Stored, error) {
	if err := l.way(); err != nil {
		return lease.Stored{}, err
	}
	return l.Store.Lease(ctx, manifest)
}

func (l *line) Append(ctx context.Context, writes []lease.Write) ([]storage.Appended, error) {
	if err := l.way(); err != nil {
		return nil, err
	}
	return l.Store.Append(ctx, writes)
}

func (l *line) Renew(ctx context.Context, id lease.SessionID, leaving bool) error {
	if err := l.way(); err != nil {
		return err
	}
	return l.Store.Renew(ctx, id, leaving)
}

func (l *line) Watch(from storage.Revision, f storage.Filter, notify func()) (storage.Feed, error) {
	if err := l.way(); err != nil {
		return nil, err
	}
	l.notify = append(l.notify, notify)
	feed, err := l.Store.Watch(from, f, notify)
	if err != nil {
		return nil, err
	}
	return lineFeed{feed, l}, nil
}

func (l *line) WatchSessions(notify func()) storage.SessionFeed {
	l.notify = append(l.notify, notify)
	return lineSessions{l.Store.WatchSessions(notify), l}
}

type lineFeed struct {
	storage.Feed
	of *line
}

func (f lineFeed) Take() ([]storage.Change, error) {
	if f.of.cut.Load() {
		return nil, nil
	}
	changes, err := f.Feed.Take()
	if f.of.lose.Load() {
		return nil, storage.ErrCompacted
	}
	return changes, err
}

type lineSessions struct {
	storage.SessionFeed
	of *line
}

func (f lineSessions) Take() (storage.Membership, bool) {
	if f.of.cut.Load() {
		return storage.Membership{}, false
	}
	return f.SessionFeed.Take()
}
