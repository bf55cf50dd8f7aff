package storage

import (
	"context"
	"strings"

	"github.com/nodeactor/nodeactor/cluster/lease"
)

// Revision counts the writes of a store; each write of an object or lease has the next one. 0 is before the first.
type Revision = uint64

// ID names an object. Namespace may be empty; none of the three contains a slash.
type ID struct{ Kind, Namespace, Name string }

// Key is the name of the object's lease, and its place in the order of objects: kind/namespace/name.
func (id ID) Key() string { return id.Kind + "/" + id.Namespace + "/" + id.Name }

// ParseKey gives the ID whose Key it is, false when it is none.
func ParseKey(key string) (ID, bool) {
	kind, rest, ok := strings.Cut(key, "/")
	namespace, name, ok2 := strings.Cut(rest, "/")
	id := ID{Kind: kind, Namespace: namespace, Name: name}
	return id, ok && ok2 && id.check() == nil
}

// Object is a stored manifest. The value is whatever its writer put there; the store does not look into it.
type Object struct {
	ID
	Value []byte
	// Revision is that of the object's last write.
	Revision Revision
}

// Write is one write of an object.
type Write struct {
	// Fence, when not nil, has to be that of the present holder of the lease it names.
	Fence *lease.Fence
	// Expected is the revision the object has to have: 0 when it must not exist.
	Expected Revision
	ID       ID
	Value    []byte
	// Delete removes the object in place of writing it. The record of its lease stays.
	Delete bool
}

// Appended is what became of one write of a lease: its revision, or why it was not done.
type Appended struct {
	Revision lease.Revision
	Err      error
}

// Filter is what a watch is told of.
type Filter struct {
	// Kinds are the kinds of objects, nil for all. Leases are told of if their manifests are of these kinds.
	Kinds []string
	// Objects and Leases choose which of the two is told of.
	Objects, Leases bool
	// KeysOnly leaves out the values of objects.
	KeysOnly bool
}

// Change is the state of an object or of a lease after it has changed.
type Change struct {
	// Revision is that of the change, or of a later one of the same object or lease.
	Revision Revision
	// Manifest is set for a change of a lease: it is the Key of the object whose lease it is.
	Manifest string
	Lease    lease.Stored
	// Object is set for a change of an object; without value when it was Deleted.
	Object  Object
	Deleted bool
}

// Feed is a running watch.
type Feed interface {
	// Take gives what has changed since the last call, in order of revisions; it never waits. Of an object or lease that has changed
	// several times only the last state is told. The caller owns what it gets. An error means that the feed has ended: with
	// ErrCompacted it lost its place, read all and watch anew.
	Take() ([]Change, error)
	// Close ends the feed; notify is not called for it any more, except by a call that is under way.
	Close()
}

// Membership is what the store knows of the sessions of its processes.
type Membership struct {
	lease.Sessions
	// Dead are sessions whose process is known to have ended, or to have lost the store. That may be taken back.
	Dead []lease.SessionID
}

// SessionFeed is a running watch of the sessions.
type SessionFeed interface {
	// Take gives the sessions if they have changed since the last call; it never waits.
	Take() (Membership, bool)
	// Close ends the feed.
	Close()
}

// Store is where operators keep their manifests, leases and sessions. Its methods may be called from any goroutine. An error that wraps
// none of the sentinels of this package leaves open whether a write was done. What was answered without error is durable, as far
// as the store is.
type Store interface {
	// GetObject reads an object; of one that does not exist it gives the revision 0. The caller owns the value.
	GetObject(ctx context.Context, id ID) (Object, error)
	// ListObjects visits all objects of a kind in order of their keys until visit returns false; "" is all kinds. What it visits is at
	// least as new as the revision it returns: a Watch from there misses nothing.
	ListObjects(ctx context.Context, kind string, visit func(Object) bool) (Revision, error)
	// Write does one write and returns its revision. ErrConflict is returned when the object is not at the expected revision,
	// ErrFenced when the fence does not hold, ErrName and ErrTooLarge for what cannot be stored; in all of these cases nothing was
	// done. The fence is checked first.
	Write(ctx context.Context, w Write) (Revision, error)

	// Lease reads a lease; of a manifest nobody has held it gives a free one of revision 0. A store may forget the free records of manifests that
	// are gone, and then gives one that is free, at an epoch that none of them was above, and of a revision other than 0.
	Lease(ctx context.Context, manifest string) (lease.Stored, error)
	// Leases visits all leases that were ever written, in order of their manifests, until visit returns false. It returns a
	// revision as ListObjects does.
	Leases(ctx context.Context, visit func(manifest string, s lease.Stored) bool) (Revision, error)
	// Append writes leases, each as lease.Store says of CompareAndAppend: one may be refused and the next one done. The answers are in
	// the order of the writes. An error leaves the outcome of all of them open.
	Append(ctx context.Context, writes []lease.Write) ([]Appended, error)

	// Watch tells of changes after a revision. notify is called when there is something to Take, maybe once for many changes; it may be
	// called before Watch returns. ErrCompacted is returned, by it or by Take, when the changes since are not known any more.
	Watch(from Revision, f Filter, notify func()) (Feed, error)

	// Renew opens a session or lets it live for another lease.TTL. lease.ErrSessionEnded is returned when it was ended.
	Renew(ctx context.Context, id lease.SessionID, leaving bool) error
	// End ends a session at once and for good.
	End(ctx context.Context, id lease.SessionID) error
	// WatchSessions tells of the live sessions; the first Take gives those there are, once the store knows.
	WatchSessions(notify func()) SessionFeed

	// Close lets go of the store; it waits for what is under way. The sessions of this process are not ended by it.
	Close() error
}
