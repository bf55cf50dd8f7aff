package lease

import (
	"fmt"
	"time"
)

// Record is a lease as it is stored. The zero value is that of a manifest nobody has held yet. It outlives its manifest, so that
// the epoch goes on when there is one of that name again.
type Record struct {
	// Holder is nobody when the lease is free.
	Holder SessionID
	// Epoch counts the holders; the first has 1.
	Epoch uint64
	// AcquiredAt is when the holder, or the last one, got the lease, by its wall clock: for people only.
	AcquiredAt time.Time
}

// Free tells whether nobody holds the lease.
func (r Record) Free() bool { return r.Holder == SessionID{} }

// Taken is the record that gives the lease to a session. Whoever stores it fills in AcquiredAt.
func (r Record) Taken(by SessionID) Record { return Record{Holder: by, Epoch: r.Epoch + 1} }

// Released is the record without holder; its epoch stays, and no fence fits it any more.
func (r Record) Released() Record { return Record{Epoch: r.Epoch, AcquiredAt: r.AcquiredAt} }

// Restored is what a record becomes when it comes out of a snapshot: free, and far above every epoch that was given since.
func (r Record) Restored() Record {
	return Record{Epoch: r.Epoch + restoredStep, AcquiredAt: r.AcquiredAt}
}

// CheckNext tells whether a record may follow another: a taken one with the next epoch, a free one with the same. Otherwise ErrEpoch is
// returned.
func CheckNext(old, next Record) error {
	want := old.Epoch
	if !next.Free() {
		want++
	}
	if next.Epoch != want {
		return fmt.Errorf("cannot follow epoch %d of %s with %d of %s: %w", old.Epoch, old.Holder, next.Epoch, next.Holder, ErrEpoch)
	}
	return nil
}
