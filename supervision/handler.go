package supervision

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Handler is the code of one actor.
type Handler interface {
	// Receive takes one message and must not block. An error is an ErrorReturn fault of the
	// child, or a BindFailure when it wraps a BindError; ErrDone ends it normally.
	Receive(ctx Context, msg any) error
}

// HandlerFunc is a Handler without state of its own.
type HandlerFunc func(ctx Context, msg any) error

// Receive calls f.
func (f HandlerFunc) Receive(ctx Context, msg any) error { return f(ctx, msg) }

// Started is the first message of a generation. The child counts as ready once Receive
// returned nil for it, unless DeferReady was called.
type Started struct{}

// Stopping is the last message of a generation that is told to stop. Its context has ended.
type Stopping struct{}

// JobDone tells that a job ended, whatever its error. A panic in a job is a fault of the child
// instead, and so is a BindError.
type JobDone struct {
	Name  string
	Value any
	Err   error
}

// ErrDone is returned when an actor has finished its work: a normal end, and a fault only of
// a permanent child of a group. A member of a pool is then forgotten, whatever its type.
var ErrDone = errors.New("done")

// BindError is returned when a listener cannot get its address.
type BindError struct {
	Addr string
	Err  error
}

// Error names the address and the cause.
func (e *BindError) Error() string { return fmt.Sprintf("cannot listen on %s: %v", e.Addr, e.Err) }

// Unwrap returns the cause.
func (e *BindError) Unwrap() error { return e.Err }

// Job is blocking work. One of Deadline, BeatWithin and Endless must be set.
type Job struct {
	Name string
	// Deadline ends the job's context; a job that is still running StopTimeout later is a Hang.
	Deadline time.Duration
	// BeatWithin is the longest silence between two calls of beat before the job is a Hang.
	BeatWithin time.Duration
	// Endless jobs live as long as the child.
	Endless bool
	Run     func(ctx context.Context, beat func()) (any, error)
}

// Context is what an actor knows and can do; it is valid for one generation.
type Context interface {
	// Context ends when the generation is stopped, cancelled for a hang, or abandoned. It
	// carries the generation's fence for FenceFrom and CheckFence.
	Context() context.Context
	Path() string
	Generation() uint64
	Self() Ref
	Clock() Clock
	Log() *slog.Logger
	System() *System
	// Go starts a guarded goroutine; its end comes back as JobDone.
	Go(Job)
	Send(to Ref, msg any)
	// After sends msg to this generation once d has passed, unless cancelled; at once when d is not
	// positive. It is no dead letter if the generation ends before.
	After(d time.Duration, msg any) (cancel func())
	// DeferReady leaves the acknowledgement of the start to Ready.
	DeferReady()
	Ready()
	Fence() Fence
}
