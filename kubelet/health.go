package kubelet

import (
	"fmt"
	"sync"
	"time"
)

// clockReading is a time read from the tree's clock.
type clockReading = time.Time

// health is when the runtime was last looked at with success, and what went wrong since.
type health struct {
	mu        sync.Mutex
	threshold time.Duration
	began     time.Time // of the last good relist
	fault     error
}

func newHealth(threshold time.Duration) *health { return &health{threshold: threshold} }

// good notes a relist that succeeded; began is when it began.
func (h *health) good(began time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.began, h.fault = began, nil
}

// bad notes a relist that failed. It returns whether this is news.
func (h *health) bad(err error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	news := h.fault == nil || h.fault.Error() != err.Error()
	h.fault = err
	return news
}

// err is nil while the last good relist is young enough. One failed relist does not make the node unhealthy; a hung one
// lets the last good one age.
func (h *health) err(now time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch age := now.Sub(h.began); {
	case h.began.IsZero() && h.fault != nil:
		return fmt.Errorf("PLEG is not healthy: pleg has yet to be successful: %w", h.fault)
	case h.began.IsZero():
		return notReady("PLEG is not healthy: pleg has yet to be successful")
	case age <= h.threshold:
		return nil
	case h.fault != nil:
		return fmt.Errorf("PLEG is not healthy: pleg was last seen active %v ago; threshold is %v: %w", age.Truncate(time.Second), h.threshold, h.fault)
	default:
		return fmt.Errorf("PLEG is not healthy: pleg was last seen active %v ago; threshold is %v: no answer from the runtime", age.Truncate(time.Second), h.threshold)
	}
}
