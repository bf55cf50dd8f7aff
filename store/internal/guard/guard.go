// Package guard starts the goroutines of the store, each under a name, with its panics caught and its end reported.
package guard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	"github.com/nodeactor/nodeactor/supervision"
)

var (
	// ErrExited is returned when a function ended its goroutine instead of returning.
	ErrExited = errors.New("goroutine was ended")
	// ErrPanicked is returned when a function panicked.
	ErrPanicked = errors.New("panic")
)

// Group is a set of named goroutines whose contexts end together; what one of them returns does not concern the others.
type Group struct {
	group *supervision.Group
	log   *slog.Logger

	mu     sync.Mutex // orders Go before Cancel, and so before Wait
	closed bool
}

// New returns a group whose members' context ends with ctx or Cancel. Panics of members go to log.
func New(ctx context.Context, name string, log *slog.Logger) *Group {
	return &Group{group: supervision.NewGroup(ctx, name, nil), log: log}
}

// Go starts f. What it returns, or its panic or runtime.Goexit as an error, is handed to then, which may be nil.
// After Cancel it starts nothing, hands ErrExited to then and returns false.
func (g *Group) Go(name string, f func(ctx context.Context) error, then func(error)) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		if then != nil {
			then(fmt.Errorf("cannot start %s: %w", name, ErrExited))
		}
		return false
	}
	g.group.Go(name, func(ctx context.Context) error {
		if err := g.call(ctx, name, f, then); err != nil && then == nil {
			g.log.Warn("store goroutine failed", "name", name, "reason", err)
		}
		return nil
	})
	return true
}

func (g *Group) call(ctx context.Context, name string, f func(context.Context) error, then func(error)) (err error) {
	err = fmt.Errorf("cannot finish %s: %w", name, ErrExited)
	defer func() {
		if r := recover(); r != nil {
			g.log.Error("panic", "in", name, "reason", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("cannot finish %s: %w: %v", name, ErrPanicked, r)
		}
		if then != nil {
			then(err)
		}
	}()
	err = f(ctx)
	return err
}

// Cancel ends the context of all members, and lets no new ones in.
func (g *Group) Cancel() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.group.Cancel()
}

// Wait returns when all members have ended or ctx has; it reports whether they have.
func (g *Group) Wait(ctx context.Context) bool {
	done := make(chan struct{})
	supervision.NewGroup(context.WithoutCancel(ctx), "wait", nil).Go("wait", func(context.Context) error {
		_ = g.group.Wait()
		close(done)
		return nil
	})
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}
