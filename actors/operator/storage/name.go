package storage

import (
	"fmt"
	"strings"
	"unicode"
)

// check refuses what cannot be part of a key.
func (id ID) check() error {
	for _, part := range []struct{ what, text string }{{"kind", id.Kind}, {"namespace", id.Namespace}, {"name", id.Name}} {
		if part.text == "" && part.what != "namespace" || strings.ContainsFunc(part.text, inexpressible) {
			return fmt.Errorf("cannot use %q as a %s: %w", part.text, part.what, ErrName)
		}
	}
	return nil
}

func inexpressible(r rune) bool { return r == '/' || unicode.IsControl(r) }

// check refuses a write that no store could do.
func (w Write) check() error {
	if len(w.Value) > MaxValue {
		return fmt.Errorf("cannot write %s: its value has %d bytes, the most is %d: %w", w.ID.Key(), len(w.Value), MaxValue, ErrTooLarge)
	}
	return w.ID.check()
}
