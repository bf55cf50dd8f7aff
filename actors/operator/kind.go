package operator

import (
	"fmt"
	"reflect"
	"regexp"

	"github.com/nodeactor/nodeactor/actors/operator/schema"
)

// kindPattern is what a kind may be called: CamelCase, as the API wants it of its kinds.
var kindPattern = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

// kindOf is the kind of a specification's type. It is asked of the zero value, so a pointer is no specification.
func kindOf[S Specification]() string {
	var zero S
	if t := reflect.TypeFor[S](); t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		return ""
	}
	return zero.Kind()
}

// checkSpecification refuses types that cannot be specifications: they must have a schema, because whatever has one is serialised
// without loss, and keep all they hold in fields that are serialised.
func checkSpecification[S Specification]() error {
	t := reflect.TypeFor[S]()
	if t.Kind() != reflect.Struct {
		return fmt.Errorf("cannot use %s: it has to be a struct, and Kind a method of the struct and not of a pointer to it: %w", t, ErrSpecification)
	}
	if kind := kindOf[S](); len(kind) > maxKind || !kindPattern.MatchString(kind) {
		return fmt.Errorf("cannot use %s: its kind %q is not a CamelCase word of at most %d letters: %w", t, kind, maxKind, ErrSpecification)
	}
	if _, err := schema.Of(t); err != nil {
		return fmt.Errorf("cannot use %s: %w: %w", t, err, ErrSpecification)
	}
	return nil
}
