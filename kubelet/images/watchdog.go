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
	last    time.Time // of the last touch
	stopped bool
	halt    func() bool
}

// watch derives a context that ends with ErrStalled when nothing touches the watchdog for a whole limit. The caller must
// call stop.
func watch(ctx context.Context, clock Clock, limit time.Duration) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watchdog{clock: clock, limit: limit, cancel: cancel}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = clock.Now()
	w.halt = clock.AfterFunc(limit, w.elapsed)
	return ctx, w
}

func (w *watchdog) touch() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = w.clock.Now()
}

// elapsed runs when a limit has passed since what was then the last touch.
func (w *watchdog) elapsed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	idle := w.clock.Now().Sub(w.last)
	switch {
	case w.stopped:
	case idle < w.limit:
		w.halt = w.clock.AfterFunc(w.limit-idle, w.elapsed)
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
