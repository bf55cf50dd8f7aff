package operator

import (
	"errors"
	"fmt"
)

// told is an error of the operator's own code with its text as it was when the pass ended: nobody calls its Error method again.
type told struct {
	text  string
	cause error
}

// Error implements error.
func (t *told) Error() string { return t.text }

// Unwrap gives the error itself; nil when it cannot be looked into.
func (t *told) Unwrap() error { return t.cause }

// tell takes the text of an error of the operator's own code, whose methods may panic as any of its code may: those of a nil pointer in an
// error do.
func tell(err error) error {
	if err == nil {
		return nil
	}
	t := &told{text: textOf(err)}
	if searchable(err) {
		t.cause = err
	}
	return t
}

// textOf is the text of an error, or why it has none.
func textOf(err error) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprintf("the error of the pass cannot be read: its Error method panicked: %v", v)
		}
	}()
	return err.Error()
}

// searchable tells whether all that an error wraps can be looked at without a panic.
func searchable(err error) (can bool) {
	defer func() { can = recover() == nil }()
	return !errors.Is(err, errNobody)
}

// errNobody is in no error: who looks for it looks at all of them.
var errNobody = errors.New("nobody returns this")
