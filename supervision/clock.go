package supervision

import (
	"context"
	"time"
)

// Clock is the only source of time of the product.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f in its own goroutine after d; stop tells whether it prevented that.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
	// Sleep waits for d, or returns the context's error earlier.
	Sleep(ctx context.Context, d time.Duration) error
}

// RealClock is the machine's clock; inside a testing/synctest bubble it is the bubble's.
func RealClock() Clock { return realClock{} }

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }

func (realClock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
