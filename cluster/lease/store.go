package lease

import (
	"context"
	"time"
)

// Revision counts the writes of a record; 0 is that of one never written.
type Revision uint64

// Stored is a record and its revision.
type Stored struct {
	Record
	Revision Revision
}

// Write is a record to be stored if the one there still has the expected revision.
type Write struct {
	Manifest string
	Expected Revision
	Record   Record
}

// At fills in when the lease was acquired, for a write that takes it.
func (w Write) At(wall time.Time) Write {
	if !w.Record.Free() {
		w.Record.AcquiredAt = wall.UTC().Round(0)
	}
	return w
}

// Store is where leases last, beside what is written under them. Its methods may be called from any goroutine.
type Store interface {
	// Get reads a lease; of a manifest nobody has held it gives a free one of revision 0.
	Get(ctx context.Context, manifest string) (Stored, error)
	// List visits all records that were ever written, in order of their manifests, until visit returns false.
	List(ctx context.Context, visit func(manifest string, s Stored) bool) error
	// CompareAndAppend does a write and returns the new revision. ErrConflict is returned when the record is not at the expected
	// revision, ErrEpoch when it must not follow; both mean that nothing was done. Of any other error the outcome is unknown.
	CompareAndAppend(ctx context.Context, w Write) (Revision, error)
	// WriteFenced stores a value under a key, in one step with the check of the fence. ErrFenced means that nothing was done.
	WriteFenced(ctx context.Context, f Fence, key string, value []byte) error
	// Read gives the value of a key, nil when there is none. The caller owns it.
	Read(ctx context.Context, key string) ([]byte, error)
}
