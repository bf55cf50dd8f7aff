package storage

import (
	"context"

	"github.com/nodeactor/nodeactor/cluster/lease"
)

// role is what a process is for a shared store at a time: the host, or a guest of the host.
type role interface {
	GetObject(ctx context.Context, id ID) (Object, error)
	Lease(ctx context.Context, manifest string) (lease.Stored, error)
	Write(ctx context.Context, w Write) (Revision, error)
	Append(ctx context.Context, writes []lease.Write) ([]Appended, error)
	Renew(ctx context.Context, id lease.SessionID, leaving bool) error
	End(ctx context.Context, id lease.SessionID) error
	WatchSessions(notify func()) SessionFeed
	page(ctx context.Context, bucket, prefix, after string) ([]entry, Revision, bool, error)
	watch(from Revision, f Filter, notify func()) (source, error)
	// gone is closed when the role is over.
	gone() <-chan struct{}
	close() error
}

// source is a feed that knows its place.
type source interface {
	// take is Take, and gives the revision up to which all changes have been taken.
	take() ([]Change, Revision, error)
	Close()
}
