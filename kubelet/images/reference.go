package images

import (
	"fmt"

	"github.com/distribution/reference"
	"github.com/google/go-containerregistry/pkg/name"
)

// Normalize gives the full form of a reference: host, repository, and tag or digest. "nginx" becomes
// docker.io/library/nginx:latest; a reference with tag and digest keeps the digest alone. The error is
// ErrInvalidReference.
func Normalize(ref string) (string, error) {
	named, err := reference.ParseDockerRef(ref)
	if err != nil {
		return "", &referenceError{ref: ref, err: err}
	}
	full := named.String()
	if _, err := name.ParseReference(full); err != nil {
		return "", &referenceError{ref: ref, err: err}
	}
	return full, nil
}

// referenceError says why a string is no reference, in the words pods' events have had for it all along.
type referenceError struct {
	ref string
	err error
}

func (e *referenceError) Error() string {
	return fmt.Sprintf("couldn't parse image name %q: %v", e.ref, e.err)
}
func (e *referenceError) Unwrap() []error { return []error{ErrInvalidReference, e.err} }

// pinned reports whether a normalised reference names a digest, which can only ever mean one image.
func pinned(ref string) bool {
	named, err := reference.ParseNamed(ref)
	if err != nil {
		return false
	}
	_, ok := named.(reference.Digested)
	return ok
}
