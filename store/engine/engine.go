package engine

import (
	"context"
	"errors"
	"io"
)

var (
	// ErrCompacted is returned when the asked revision is older than the history kept.
	ErrCompacted = errors.New("revision has been compacted")
	// ErrFuture is returned when the asked revision has not happened yet.
	ErrFuture = errors.New("revision has not happened yet")
	// ErrLocked is returned when another process uses the directory.
	ErrLocked = errors.New("in use by another process")
	// ErrTooLarge is returned when a value is larger than the engine takes.
	ErrTooLarge = errors.New("value is too large")
	// ErrNoSpace is returned when the engine's size quota, or its disk, is used up.
	ErrNoSpace = errors.New("no space left")
	// ErrClosed is returned when the engine was closed or has failed; a write that was under way may have been done.
	ErrClosed = errors.New("engine is closed")
	// ErrStalled is returned when the log does not reach the disk.
	ErrStalled = errors.New("disk does not take writes")
	// ErrDamaged is returned when a file of the engine cannot be read as what it is.
	ErrDamaged = errors.New("damaged")
)

// KV is one stored version of a key. It is immutable once handed out.
type KV struct {
	Key            string
	Value          []byte
	CreateRevision int64
	ModRevision    int64
	Version        int64 // writes since creation, 1 for a fresh key
	Lease          int64 // 0 = none
}

const (
	// First is the least key a Watch can begin with.
	First = "\x00"
	// Last as the end of a Watch or a History is behind every key.
	Last = "\x00"
)

// AnyRevision as Write.Expect writes without a condition.
const AnyRevision = -1

// Guard is a condition on a key other than the written one: a write whose guard does not hold is refused.
type Guard struct {
	Key         string
	ModRevision int64 // 0 = the key must be absent
}

// Write is one conditional change of one key.
type Write struct {
	Key    string
	Expect int64 // the key's ModRevision must be this; 0 = absent; AnyRevision = no condition
	Guards []Guard
	Delete bool
	Value  []byte // ignored when Delete
	Lease  int64  // 0 = none
	// Frees says that the write makes room, or must go on while there is none: it is taken over the quota too, as deletions are.
	Frees bool
	// Own says that nobody else writes this very value, because it holds something made for it: that it is there proves the write done.
	Own bool
}

// Result is the outcome of a Write.
type Result struct {
	Revision int64 // of the write when Done, else of the look
	Done     bool  // false: a condition did not hold and nothing changed
	Current  *KV   // the key as it is when not Done; nil = absent
}

// Change is one event of the log, in revision order. For a deletion KV holds only Key and ModRevision.
type Change struct {
	Delete bool
	KV     KV
	Prev   *KV // only in History, and nil when the key was created
}

// Batch is a run of changes; a revision is never split over two batches. Up to Revision everything has been handed out with it.
type Batch struct {
	Changes  []Change
	Revision int64
}

// Page is the answer to a Range.
type Page struct {
	KVs      []KV
	Count    int64 // keys in the whole range
	Revision int64 // the engine's revision at the look
}

// Status describes the engine for people and facades.
type Status struct {
	DBSize    int64 // bytes on disk
	DBInUse   int64 // bytes of them that hold data
	Revision  int64
	Compacted int64
	Members   int
	Leader    bool
	Term      uint64
	Alarm     string // what is wrong with the data of the members, "" = nothing
}

// Engine is the durable log. All methods are safe for concurrent use and end with their context.
type Engine interface {
	// Txn applies w if its conditions hold, and returns once that is durable.
	Txn(ctx context.Context, w Write) (Result, error)
	// Range reads keys in [from, to) at revision (0 = now), at most limit of them (0 = all). It does not wait for other members.
	Range(ctx context.Context, from, to string, revision int64, limit int64) (Page, error)
	// Watch hands every change of keys in [from, to) after the revision to f, in order, until ctx ends or f fails.
	// From First to Last is every key.
	Watch(ctx context.Context, from, to string, after int64, f func(Batch) error) error
	// History returns changes in (after, upto] with their previous values, at least one revision's worth and about limit of them,
	// and the revision up to which the answer is complete.
	History(ctx context.Context, from, to string, after, upto int64, limit int) ([]Change, int64, error)
	// Barrier returns a revision that is at least that of every write acknowledged, by any member, before the call.
	Barrier(ctx context.Context) (int64, error)
	// Revision is the newest revision applied here.
	Revision() int64
	// Solo reports whether this member is alone, so that what is applied here is all there is.
	Solo() bool
	// Grant makes a lease of ttl seconds; keys written with it disappear when it ends.
	Grant(ctx context.Context, ttl int64) (int64, error)
	// Compact forgets the history before revision.
	Compact(ctx context.Context, revision int64) error
	// Snapshot writes a consistent copy of everything to w.
	Snapshot(ctx context.Context, w io.Writer) error
	// Status describes the engine.
	Status() Status
	// Failed is closed when the engine has stopped serving; Err says why.
	Failed() <-chan struct{}
	// Err is nil until Failed is closed.
	Err() error
	// Close stops the engine and releases its directory; it waits as long as ctx.
	Close(ctx context.Context) error
}
