package images

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// watchdog ends a context when touch is not called for a whole limit.
type watchdog struct {
	clock  Clock
	limit  time.Duration
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	touched bool
	stopped bool
	halt    func() bool
}

// watch derives a context that ends with ErrStalled when nothing touches the watchdog for between one and two limits.
// The caller must call stop.
func watch(ctx context.Context, clock Clock, limit time.Duration) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watchdog{clock: clock, limit: limit, cancel: cancel}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.halt = clock.AfterFunc(limit, w.elapsed)
	return ctx, w
}

func (w *watchdog) touch() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.touched = true
}

// elapsed runs when a limit has passed.
func (w *watchdog) elapsed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.stopped:
	case w.touched:
		w.touched = false
		w.halt = w.clock.AfterFunc(w.limit, w.elapsed)
	default:
		w.cancel(fmt.Errorf("%w for %v", ErrStalled, w.limit))
	}
}

func (w *watchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.halt()
	w.cancel(nil)
}

// causeOf prefers the reason a context ended over the error that followed from it.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
