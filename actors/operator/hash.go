package operator

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Canonical is the one form in which a specification is stored, and its content hash: the same content has the same form and hash,
// whatever text it came from.
func Canonical[S Specification](spec S) (form json.RawMessage, hash string, err error) {
	form, err = json.Marshal(spec)
	if err != nil {
		return nil, "", fmt.Errorf("cannot serialise the specification of %s: %w", spec.Kind(), err)
	}
	if len(form) > maxValue {
		return nil, "", fmt.Errorf("cannot store the specification of %s, it has %d bytes: %w", spec.Kind(), len(form), ErrTooLarge)
	}
	return form, hashOf(form), nil
}

// hashOf is the SHA-256 of a text.
func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
