package engine

import (
	"sync"
	"time"
)

const (
	// stallAfter is how long the log may stand still under a write before further ones are held back.
	stallAfter = time.Second
	// queueFor is how long a write that was not begun waits for a log that stands still before it is refused.
	queueFor = 10 * time.Second
)

// pace knows whether writes reach the disk.
type pace struct {
	mu sync.Mutex
	// pending writes have begun and not ended; those whose caller went away are unknown until the log moves.
	pending, unknown int
	// applied is where the log was at the last look that saw it move, since when that was.
	applied uint64
	since   time.Time
}

func (p *pace) begin(now time.Time, applied uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.look(now, applied)
	p.pending++
}

// end closes the books of a write; known tells whether its outcome is.
func (p *pace) end(known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending = max(p.pending-1, 0)
	if !known {
		p.unknown++
	}
}

// look notes progress. The lock is held.
func (p *pace) look(now time.Time, applied uint64) {
	if applied != p.applied || p.pending+p.unknown == 0 {
		p.applied, p.since, p.unknown = applied, now, 0
	}
}

// stalled tells whether a write has waited for the disk for too long.
func (p *pace) stalled(now time.Time, applied uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.look(now, applied)
	return now.Sub(p.since) >= stallAfter
}

// silence is for how long the log has not moved.
func (p *pace) silence(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Sub(p.since)
}

// excuse begins the silence anew: the log stood still for another reason than its disk.
func (p *pace) excuse(now time.Time, applied uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.applied, p.since = applied, now
}

// underWay is how many writes have begun and not ended.
func (p *pace) underWay() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pending
}

// reset forgets what a member that is gone owed.
func (p *pace) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unknown, p.applied, p.since = 0, 0, time.Time{}
}
