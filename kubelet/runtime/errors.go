package runtime

import (
	"errors"
	"fmt"
)

var (
	// ErrNotFound is returned when the sandbox or container is not known here.
	ErrNotFound = errors.New("not found")
	// ErrExists is returned when the container id is already used.
	ErrExists = errors.New("already exists")
	// ErrNotRunning is returned when the container has exited.
	ErrNotRunning = errors.New("not running")
	// ErrUnkillable is returned when processes survived SIGKILL until the deadline; the text names their pids.
	ErrUnkillable = errors.New("processes do not die")
	// ErrDeadline is returned when a helper process exceeded its deadline and was killed.
	ErrDeadline = errors.New("deadline exceeded, helper killed")
	// ErrStart is returned when a container or exec did not start; every *StartError matches it.
	ErrStart = errors.New("container did not start")
)

// Reasons of a waiting container whose start failed, as Kubernetes writes them.
const (
	// ReasonCreateContainer: the spec cannot be carried out (a mount source, a limit, the root file system).
	ReasonCreateContainer = "CreateContainerError"
	// ReasonRunContainer: all was set up, the command itself cannot be executed.
	ReasonRunContainer = "RunContainerError"
)

// StartError says why a container or exec did not start. Nothing of it is left when this is returned.
type StartError struct {
	// Reason is ReasonCreateContainer or ReasonRunContainer.
	Reason string
	// Message is the kernel's or libcontainer's text.
	Message string
	// ExitCode is what a shell would report: 127 command not found, 126 not executable, 128 anything else.
	ExitCode int
	// Cause is the underlying error if it was one of this package's, for instance ErrDeadline.
	Cause error
}

// Error is the message alone: the reason travels beside it in Kubernetes' fields.
func (e *StartError) Error() string { return fmt.Sprintf("cannot start container: %s", e.Message) }

// Is matches ErrStart.
func (e *StartError) Is(target error) bool { return target == ErrStart }

// Unwrap returns Cause.
func (e *StartError) Unwrap() error { return e.Cause }

// UnkillableError carries the pids that survived.
type UnkillableError struct{ PIDs []int }

// Error names the pids.
func (e *UnkillableError) Error() string { return fmt.Sprintf("%v: pids %v", ErrUnkillable, e.PIDs) }

// Is matches ErrUnkillable.
func (e *UnkillableError) Is(target error) bool { return target == ErrUnkillable }
