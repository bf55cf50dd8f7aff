package engine

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/supervision"
)

const (
	// reserveBytes must be free on the disk, or writes are refused: what is under way needs room to end.
	reserveBytes = 16 << 20
	// lastBytes must be free for writes that make room: one log segment, and some growth of the database.
	lastBytes = walSegmentBytes + 2<<20
	// openBytes must be free for a member to be opened: two log segments and some growth.
	openBytes = 2*walSegmentBytes + reserveBytes
	// lookFor is how long one look at the free space is believed, lookBytes how many bytes are let through on it.
	lookFor   = 100 * time.Millisecond
	lookBytes = 1 << 20
)

// room knows whether the disk of a directory has space left.
type room struct {
	dir string
	// waiting is that a member cannot be opened for want of room.
	waiting spell

	mu     sync.Mutex
	looked time.Time
	// fresh bytes were let through since then; recent ones before, of about the last second: the database has yet to write them.
	fresh, recent int64
	// free is what the last look has found.
	free int64
}

// check refuses a write of n bytes that the disk has no room for. One that makes room may use a part of what others must leave.
func (r *room) check(now time.Time, n int, frees bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if since := now.Sub(r.looked); since > lookFor || r.fresh > lookBytes {
		r.look(now, since)
	}
	need := reserveBytes + 2*r.recent
	if frees {
		need = lastBytes + 2*r.recent
	}
	if r.free < need {
		return full(r.dir, r.free, need)
	}
	r.fresh += int64(n)
	return nil
}

// look asks the disk. The lock is held.
func (r *room) look(now time.Time, since time.Duration) {
	r.recent -= int64(min(since.Seconds(), 1) * float64(r.recent))
	r.recent += r.fresh
	r.looked, r.fresh, r.free = now, 0, freeBytes(r.dir)
}

func full(dir string, free, need int64) error {
	return fmt.Errorf("%w: the disk of %s has %d MB free and the store needs %d; free some space on it", ErrNoSpace, dir, free>>20, need>>20)
}

// await returns once there is room for a member.
func (r *room) await(ctx context.Context, clock supervision.Clock, log *slog.Logger) error {
	if err := os.MkdirAll(r.dir, dirMode); err != nil {
		return err
	}
	for {
		free := freeBytes(r.dir)
		if free >= openBytes {
			r.waiting.end(log, "the store has room on its disk again")
			return nil
		}
		r.waiting.begin(log, "the store waits for room on its disk before it is opened", "dir", r.dir, "free_mb", free>>20, "needed_mb", int64(openBytes)>>20)
		if clock.Sleep(ctx, lookEvery) != nil {
			return full(r.dir, free, openBytes)
		}
	}
}

// freeBytes is what this process may still write to the file system of dir. One that cannot be asked is not held against the writer.
func freeBytes(dir string) int64 {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 1 << 62
	}
	blocks := st.Bavail
	if os.Geteuid() == 0 {
		blocks = st.Bfree
	}
	return int64(blocks) * st.Bsize
}
