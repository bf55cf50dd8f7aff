package engine

import (
	"sync"
	"time"
)

// hold keeps writes back for a while that has a reason and an end, as the rewriting of the database has.
type hold struct {
	mu    sync.Mutex
	until time.Time // zero = nothing is held
}

// begin holds writes until end, and no longer than limit.
func (h *hold) begin(now time.Time, limit time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until = now.Add(limit)
}

func (h *hold) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until = time.Time{}
}

// on tells whether writes are held now.
func (h *hold) on(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return now.Before(h.until)
}
