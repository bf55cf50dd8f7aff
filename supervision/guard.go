package supervision

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// errGoexit is returned when a handler or job ended its goroutine instead of returning.
var errGoexit = errors.New("runtime.Goexit was called")

// errNoHandler is returned when the constructor of a child returns nothing.
var errNoHandler = errors.New("the constructor returned no handler")

// PanicError is returned when guarded code panicked.
type PanicError struct {
	Value any
	Stack []byte
}

// Error shows the panic's value.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the panic's value when it was an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// receive is the guard around the handler: whatever the handler does, it comes back as an
// error, or the mailbox goes on in another goroutine.
func (c *cell) receive(msg any) (err error) {
	finished := false
	defer func() {
		if finished {
			return
		}
		panics.Add(1)
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
			return
		}
		// A Goexit cannot be held up: it unwinds this goroutine.
		c.sys.takeOver(c, msg)
	}()
	if c.sys.measuring.Load() {
		err = c.labelled(msg)
	} else {
		err = c.deliver(msg)
	}
	finished = true
	return err
}

// resume takes over from a goroutine that a handler has ended.
func (c *cell) resume(msg any) {
	c.handled(msg, errGoexit)
	c.run()
}

// deliver hands a message to the handler, which is built when its first message comes. One
// whose construction took so long that the child was abandoned meanwhile gets nothing.
func (c *cell) deliver(msg any) error {
	h := c.handler
	if h == nil {
		var err error
		if h, err = c.construct(msg); h == nil || c.fenced.Load() {
			return err
		}
	}
	if c.sys.tap != nil {
		if taken, err := c.sys.tap.Deliver(c, msg); taken || err != nil {
			return err
		}
	}
	if in, ok := msg.(injection); ok {
		return c.injected(in)
	}
	return h.Receive(c, msg)
}

// construct runs the constructor, under the guard. A child whose constructor failed has
// nothing that could be stopped.
func (c *cell) construct(msg any) (Handler, error) {
	if _, ok := msg.(Started); !ok {
		return nil, nil
	}
	handler := c.build()
	if handler == nil {
		return nil, errNoHandler
	}
	c.mu.Lock()
	c.handler = handler
	c.mu.Unlock()
	return handler, nil
}

// injection is a message that makes its receiver fail.
type injection struct{ kind FaultKind }

// injected carries out a requested fault. An injected hang ends with the context.
func (c *cell) injected(in injection) error {
	switch in.kind {
	case Panic:
		panic("injected panic")
	case Hang:
		c.sys.await(c.Context())
		return nil
	case BindFailure:
		return &BindError{Addr: "injected", Err: errors.New("injected bind failure")}
	default:
		return errors.New("injected error")
	}
}

// classify finds the kind of fault an error stands for.
func classify(err error) (FaultKind, []byte) {
	var p *PanicError
	var b *BindError
	switch {
	case errors.As(err, &p):
		return Panic, p.Stack
	case errors.Is(err, errGoexit):
		return Panic, nil
	case errors.As(err, &b):
		return BindFailure, nil
	}
	return ErrorReturn, nil
}
