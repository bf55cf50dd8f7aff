package images

import (
	"errors"
	"fmt"
	"syscall"
)

var (
	// ErrInvalidReference is returned when a string cannot be the reference of an image.
	ErrInvalidReference = errors.New("invalid reference")
	// ErrPull is returned when a registry refuses an image, does not have it, or cannot be reached; the text of the
	// error is the registry's reason.
	ErrPull = errors.New("pull failed")
	// ErrNotPresent is returned when an image must be on the node already and is not.
	ErrNotPresent = errors.New("image not present on this node")
	// ErrStalled is returned, together with ErrPull, when a transfer made no progress for the no-progress limit.
	ErrStalled = errors.New("no progress")
	// ErrCorrupt is returned when the content of an image or archive contradicts its digests or its format.
	ErrCorrupt = errors.New("corrupt image")
	// ErrNoSpace is returned when the disk that holds the images is full.
	ErrNoSpace = errors.New("no space left for images")
	// ErrPlatform is returned, together with ErrPull, when an image exists but not for this node's platform.
	ErrPlatform = errors.New("no match for platform")
)

// Reason maps an error of this package to the waiting reason a container status shows: "" for nil,
// InvalidImageName, ErrImageNeverPull or ErrImagePull.
func Reason(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, ErrInvalidReference):
		return "InvalidImageName"
	case errors.Is(err, ErrNotPresent):
		return "ErrImageNeverPull"
	}
	return "ErrImagePull"
}

// spaceError adds ErrNoSpace to an error that a full disk or quota caused.
func spaceError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return errors.Join(ErrNoSpace, err)
	}
	return err
}

// pullError is the failure of one pull; its text is what the pod's events and status show.
type pullError struct {
	ref string
	err error
}

func (e *pullError) Error() string   { return fmt.Sprintf("cannot pull image %q: %v", e.ref, e.err) }
func (e *pullError) Unwrap() []error { return []error{ErrPull, e.err} }
