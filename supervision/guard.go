package supervision

import (
	"errors"
	"fmt"
)

// errGoexit is returned when a handler or job ended its goroutine instead of returning.
var errGoexit = errors.New("runtime.Goexit was called")

// PanicError is returned when guarded code panicked.
type PanicError struct {
	Value any
	Stack []byte
}

// Error shows the panic's value.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }


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
