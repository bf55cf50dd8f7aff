package images

import (
	"fmt"

	"github.com/distribution/reference"
)

// Normalize gives the full form of a reference: host, repository, and tag or digest. "nginx" becomes
// docker.io/library/nginx:latest; a reference with tag and digest keeps the digest alone. The error is
// ErrInvalidReference.
func Normalize(ref string) (string, error) {
	named, err := reference.ParseDockerRef(ref)
	if err != nil {
		return "", fmt.Errorf("cannot parse image name %q: %w: %w", ref, ErrInvalidReference, err)
	}
	return named.String(), nil
}

// pinned reports whether a normalised reference names a digest, which can only ever mean one image.
func pinned(ref string) bool {
	named, err := reference.ParseNamed(ref)
	if err != nil {
		return false
	}
	_, ok := named.(reference.Digested)
	return ok
}
