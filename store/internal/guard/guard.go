// Package guard starts the goroutines of the store, each under a name and with its panics caught.
package guard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
)

var (
	// ErrExited is returned when a function ended its goroutine instead of returning.
	ErrExited = errors.New("goroutine was ended")
	// ErrPanicked is returned when a function panicked.
	ErrPanicked = errors.New("panic")
)

// Group is a set of named goroutines that end together. The zero value is not usable; see New.
type Group struct {
	ctx    context.Context
	cancel context.CancelFunc
	log    *slog.Logger
	wg     sync.WaitGroup
}

// New returns a group whose members' context ends with Cancel. Panics of members go to log.
func New(ctx context.Context, name string, log *slog.Logger) *Group {
	ctx, cancel := context.WithCancel(ctx)
	return &Group{ctx: ctx, cancel: cancel, log: log.With("group", name)}
}

// Go starts f. A panic or runtime.Goexit in it is handed to then as an error, as is what it returns; then may be nil.
func (g *Group) Go(name string, f func(ctx context.Context) error, then func(error)) {
	g.wg.Add(1)
	go func() {
		defer g.wg.Done()
		err := fmt.Errorf("cannot finish %s: %w", name, ErrExited)
		defer func() {
			if r := recover(); r != nil {
				g.log.Error("panic", "in", name, "reason", r, "stack", string(debug.Stack()))
				err = fmt.Errorf("cannot finish %s: %w: %v", name, ErrPanicked, r)
			}
			if then != nil {
				then(err)
			}
		}()
		err = f(g.ctx)
	}()
}

// Cancel ends the context of all members.
func (g *Group) Cancel() { g.cancel() }

// Wait returns when all members have ended or ctx has; it reports whether they have.
func (g *Group) Wait(ctx context.Context) bool {
	done := make(chan struct{})
	go func() { g.wg.Wait(); close(done) }()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}
