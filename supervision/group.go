package supervision

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Group runs guarded goroutines for code that is not an actor: a panic in one of them is
// recorded instead of ending the process, and ends the group.
type Group struct {
	name    string
	ctx     context.Context
	cancel  context.CancelFunc
	onPanic func(Fault)
	exec    Executor
	running atomic.Int64
	wg      sync.WaitGroup
	mu      sync.Mutex
	errs    []error
}

// NewGroup makes a group whose goroutines end with ctx. onPanic may be nil.
func NewGroup(ctx context.Context, name string, onPanic func(Fault)) *Group {
	g := &Group{name: name, onPanic: onPanic, exec: executorOf(ctx)}
	g.ctx, g.cancel = context.WithCancel(ctx)
	return g
}

// Context ends when the group is cancelled or one of its goroutines failed.
func (g *Group) Context() context.Context { return g.ctx }

// Go starts f. Its error, other than of the context's end, ends the group.
func (g *Group) Go(name string, f func(ctx context.Context) error) {
	g.wg.Add(1)
	if g.exec == nil {
		go g.run(name, f)
		return
	}
	g.running.Add(1)
	g.exec.Run(Work{call: &call{g.name + " " + name, func() {
		defer g.running.Add(-1)
		g.run(name, f)
	}}})
}

func (g *Group) run(name string, f func(ctx context.Context) error) {
	defer g.wg.Done()
	failed := error(errGoexit)
	defer func() {
		if failed == nil {
			return
		}
		if errors.Is(failed, errGoexit) {
			failed = g.panicked(name, recover())
		}
		g.mu.Lock()
		g.errs = append(g.errs, fmt.Errorf("%s: %w", name, failed))
		g.mu.Unlock()
		g.cancel()
	}()
	err := f(g.ctx)
	if g.ctx.Err() != nil && errors.Is(err, g.ctx.Err()) {
		err = nil
	}
	failed = err
}

func (g *Group) panicked(name string, v any) error {
	panics.Add(1)
	err := error(errGoexit)
	f := Fault{Kind: Panic, Path: g.name, Message: "goroutine " + name, At: time.Now()}
	if v != nil {
		f.Stack = debug.Stack()
		err = &PanicError{Value: v, Stack: f.Stack}
	}
	f.Err = err
	if g.onPanic != nil {
		g.onPanic(f)
	}
	return err
}

// Cancel ends the group's context.
func (g *Group) Cancel() { g.cancel() }

// Wait returns once every goroutine has ended, with their errors.
func (g *Group) Wait() error {
	if g.exec != nil {
		g.exec.Wait(func() bool { return g.running.Load() == 0 })
	}
	g.wg.Wait()
	g.cancel()
	g.mu.Lock()
	defer g.mu.Unlock()
	return errors.Join(g.errs...)
}
