package engine

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// DefaultQuota is how many bytes a store may hold that is told nothing else: what etcd advises as the most.
	DefaultQuota = 8 << 30
	// reserveShare of the quota, as its divisor, is kept above it for writes that make room; at least leastReserve bytes.
	reserveShare = 4
	leastReserve = 64 << 20
	// nearPercent of the quota is where history is forgotten at once, before anything is refused.
	nearPercent = 80
	// reliefFor is how long a write waits over the quota for history to be forgotten, reliefLook how often it looks.
	reliefFor  = 4 * time.Second
	reliefLook = 50 * time.Millisecond
	// pressEvery is the least time between two calls for maintenance.
	pressEvery = 250 * time.Millisecond
)

// quota is what the database may hold. The library's own quota lies above it: once that is reached nothing but deletions is taken, and an
// alarm is raised that outlives the cause.
type quota struct {
	bytes int64
	// called is when maintenance was last called for, in nanoseconds; calls has room for one call.
	called atomic.Int64
	calls  chan struct{}
	// spent is set once maintenance has found that it is not history that fills the quota.
	spent   atomic.Bool
	pending unwritten
}

// unwritten counts what was let through and is not in the database's size yet: what came since the last commit but one.
type unwritten struct {
	mu           sync.Mutex
	since        time.Time
	last, before int64
}

// add counts n further bytes, and returns them all.
func (u *unwritten) add(now time.Time, n int) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	if age := now.Sub(u.since); age >= 2*commitEvery {
		u.since, u.before, u.last = now, 0, 0
	} else if age >= commitEvery {
		u.since, u.before, u.last = now, u.last, 0
	}
	u.last += int64(n)
	return u.last + u.before
}

func newQuota(bytes int64) *quota {
	if bytes <= 0 {
		bytes = DefaultQuota
	}
	return &quota{bytes: bytes, calls: make(chan struct{}, 1)}
}

// reserve is how far the library's quota lies above bytes.
func reserve(bytes int64) int64 { return max(bytes/reserveShare, leastReserve) }

// hardQuota is the library's quota for one of bytes.
func hardQuota(bytes int64) int64 {
	q := newQuota(bytes)
	return q.bytes + reserve(q.bytes)
}

// usage is how much of the disk a database takes.
type usage struct {
	size  int64 // of its file
	inUse int64 // what of it holds data
}

// bloated tells whether the file has grown so far that the library will soon take nothing.
func (q *quota) bloated(u usage) bool { return u.size >= q.bytes+reserve(q.bytes)/2 }

// near tells whether the use of the quota calls for maintenance.
func (q *quota) near(u usage) bool { return u.inUse >= q.bytes/100*nearPercent || q.bloated(u) }

// check refuses a write over the quota. Writes that make room may use half of the reserve; deletions are never refused.
func (q *quota) check(u usage, w ask) error {
	switch half := reserve(q.bytes) / 2; {
	case w.deletes:
		return nil
	case w.frees && u.inUse < q.bytes+half && u.size < q.bytes+half+half/2:
		return nil
	case u.inUse < q.bytes && !q.bloated(u):
		return nil
	case u.inUse < q.bytes:
		return fmt.Errorf("%w: the store's file has %d MB, of which %d hold data, and its quota is %d MB; it is about to be rewritten", ErrNoSpace, u.size>>20, u.inUse>>20, q.bytes>>20)
	}
	return fmt.Errorf("%w: the store holds %d MB and its quota is %d MB; deletions, and updates that do not grow, are taken: delete objects, or raise --store-quota",
		ErrNoSpace, u.inUse>>20, q.bytes>>20)
}

// press calls for maintenance.
func (q *quota) press(now time.Time) {
	last := q.called.Load()
	if now.UnixNano()-last < int64(pressEvery) || !q.called.CompareAndSwap(last, now.UnixNano()) {
		return
	}
	select {
	case q.calls <- struct{}{}:
	default:
	}
}
