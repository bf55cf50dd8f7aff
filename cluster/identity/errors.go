package identity

import (
	"errors"
	"fmt"
)

// ErrDamaged is returned when a file on which issued credentials depend exists but cannot be what it should be: not PEM, or a key that does
// not belong to its certificate. The message names the file and what to do.
var ErrDamaged = errors.New("damaged identity file")

// fileError says which file is wrong, why, and how to get out of it. It matches ErrDamaged.
type fileError struct {
	path   string
	cause  error
	remedy string
}

func (e *fileError) Error() string {
	return fmt.Sprintf("cannot use %s: %v; %s", e.path, e.cause, e.remedy)
}

func (e *fileError) Unwrap() []error { return []error{ErrDamaged, e.cause} }

// damagedRoot reports a file on which issued credentials depend.
func damagedRoot(path string, cause error) error {
	return &fileError{path, cause, "restore it from a backup; removing it makes a new one, and everything it signed stops being accepted"}
}
