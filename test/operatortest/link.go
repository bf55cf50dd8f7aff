package operatortest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/nodeactor/nodeactor/actors/operator/storage"
	"github.com/nodeactor/nodeactor/cluster/lease"
	"github.com/nodeactor/nodeactor/test/harness"
)

// errUnreachable is what a node that is cut off is answered, as is one of a fleet.
var errUnreachable = errors.New("the store does not answer")

// link is the way of one process to the store.
type link struct {
	storage.Store
	effects *effects

	mu sync.Mutex
	// cut and dead are set while nothing passes; dead ones stay so.
	cut, dead bool
	// sessions are those that were opened over it.
	sessions []lease.SessionID
	// notify are those who are to be told when something passes again.
	notify []func()
}

func newLink(store storage.Store, e *effects) *link { return &link{Store: store, effects: e} }

func (l *link) way() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut || l.dead {
		return errUnreachable
	}
	return nil
}

func (l *link) sever() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
}

func (l *link) die() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead, l.notify = true, nil
}

func (l *link) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// heal lets everything pass again, and tells those who wait for news.
func (l *link) heal() {
	l.mu.Lock()
	was, notify := l.cut, l.notify
	l.cut = false
	l.mu.Unlock()
	if was {
		for _, f := range notify {
			f()
		}
	}
}

func (l *link) onHeal(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notify = append(l.notify, f)
}

// GetObject implements storage.Store.
func (l *link) GetObject(ctx context.Context, id storage.ID) (storage.Object, error) {
	if err := l.way(); err != nil {
		return storage.Object{}, err
	}
	return l.Store.GetObject(ctx, id)
}

// ListObjects implements storage.Store.
func (l *link) ListObjects(ctx context.Context, kind string, visit func(storage.Object) bool) (storage.Revision, error) {
	if err := l.way(); err != nil {
		return 0, err
	}
	return l.Store.ListObjects(ctx, kind, visit)
}

// Write implements storage.Store.
func (l *link) Write(ctx context.Context, w storage.Write) (storage.Revision, error) {
	if err := l.way(); err != nil {
		return 0, err
	}
	revision, err := l.Store.Write(ctx, w)
	if err == nil && w.Fence != nil {
		l.effects.accepted(*w.Fence)
	}
	return revision, err
}

// Lease implements storage.Store.
func (l *link) Lease(ctx context.Context, manifest string) (lease.Stored, error) {
	if err := l.way(); err != nil {
		return lease.Stored{}, err
	}
	return l.Store.Lease(ctx, manifest)
}

// Leases implements storage.Store.
func (l *link) Leases(ctx context.Context, visit func(string, lease.Stored) bool) (storage.Revision, error) {
	if err := l.way(); err != nil {
		return 0, err
	}
	return l.Store.Leases(ctx, visit)
}

// Append implements storage.Store.
func (l *link) Append(ctx context.Context, writes []lease.Write) ([]storage.Appended, error) {
	if err := l.way(); err != nil {
		return nil, err
	}
	return l.Store.Append(ctx, writes)
}

// Renew implements storage.Store.
func (l *link) Renew(ctx context.Context, id lease.SessionID, leaving bool) error {
	if err := l.way(); err != nil {
		return err
	}
	l.mu.Lock()
	if !slices.Contains(l.sessions, id) {
		l.sessions = append(l.sessions, id)
	}
	l.mu.Unlock()
	return l.Store.Renew(ctx, id, leaving)
}

// End implements storage.Store.
func (l *link) End(ctx context.Context, id lease.SessionID) error {
	if err := l.way(); err != nil {
		return err
	}
	return l.Store.End(ctx, id)
}

// Watch implements storage.Store.
func (l *link) Watch(from storage.Revision, f storage.Filter, notify func()) (storage.Feed, error) {
	if err := l.way(); err != nil {
		return nil, err
	}
	feed, err := l.Store.Watch(from, f, notify)
	if err != nil {
		return nil, err
	}
	l.onHeal(notify)
	return linkFeed{feed, l}, nil
}

// WatchSessions implements storage.Store.
func (l *link) WatchSessions(notify func()) storage.SessionFeed {
	l.onHeal(notify)
	return linkSessions{l.Store.WatchSessions(notify), l}
}

// linkFeed is a feed that comes over a link.
type linkFeed struct {
	storage.Feed
	link *link
}

// Take implements storage.Feed.
func (f linkFeed) Take() ([]storage.Change, error) {
	if f.link.way() != nil {
		return nil, nil
	}
	return f.Feed.Take()
}

type linkSessions struct {
	storage.SessionFeed
	link *link
}

// Take implements storage.SessionFeed.
func (f linkSessions) Take() (storage.Membership, bool) {
	if f.link.way() != nil {
		return storage.Membership{}, false
	}
	return f.SessionFeed.Take()
}

// effects holds the store to what fences promise.
type effects struct {
	k  *harness.Kit
	mu sync.Mutex
	// last is the epoch of the last effect that was accepted, by manifest.
	last map[string]uint64
}

func (e *effects) accepted(f lease.Fence) {
	e.mu.Lock()
	last := e.last[f.Manifest]
	if e.last == nil {
		e.last = map[string]uint64{}
	}
	e.last[f.Manifest] = max(last, f.Epoch)
	e.mu.Unlock()
	if f.Epoch < last {
		e.k.Errorf("%s", fmt.Sprintf("an effect of %s on %s was accepted under epoch %d, after one of epoch %d", f.Holder, f.Manifest, f.Epoch, last))
	}
}
