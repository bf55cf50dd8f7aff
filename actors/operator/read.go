package operator

import (
	"context"
	"fmt"
)

// Read declares that an operator reads the manifests of another kind, and which of its own manifests a change of them concerns.
type Read struct {
	kind string
	// concerns names the manifests that a record concerns; nil when changes wake nobody.
	concerns func(Record) ([]Key, error)
}

// Kind is the kind that is read.
func (r Read) Kind() string { return r.kind }

// Concerns names the manifests a record concerns. It is the operator's own code that says so: a panic of it is an error.
func (r Read) Concerns(rec Record) (keys []Key, err error) {
	if r.concerns == nil {
		return nil, nil
	}
	defer func() {
		if v := recover(); v != nil {
			keys, err = nil, fmt.Errorf("the function that names them panicked: %v", v)
		}
	}()
	return r.concerns(rec)
}

// Wakes tells whether changes of the kind wake anybody.
func (r Read) Wakes() bool { return r.concerns != nil }

// Reads declares a read of kind T. A change wakes the manifests that concerns names of what is read, before and after the change; it must
// be quick and must not block. Nil declares a read whose changes wake nobody.
func Reads[T Specification](concerns func(changed View[T]) []Key) Read {
	read := Read{kind: kindOf[T]()}
	if concerns == nil {
		return read
	}
	read.concerns = func(r Record) ([]Key, error) {
		view, err := ViewOf[T](r)
		if err != nil {
			return nil, err
		}
		return concerns(view), nil
	}
	return read
}

// Reader is where the reads of a pass come from.
type Reader interface {
	// Get reads a manifest; ErrNotFound is returned when there is none.
	Get(ctx context.Context, kind string, key Key) (Record, error)
	// List reads all manifests of a kind in order of their keys.
	List(ctx context.Context, kind string) ([]Record, error)
}

// Get reads a manifest of a declared kind within a pass. ErrNotFound is returned when there is none, ErrUndeclaredRead when the operator
// does not declare to read the kind.
func Get[T Specification](ctx context.Context, key Key) (View[T], error) {
	reader, err := readerOf(ctx, kindOf[T]())
	if err != nil {
		return View[T]{}, err
	}
	rec, err := reader.Get(ctx, kindOf[T](), key)
	if err != nil {
		return View[T]{}, fmt.Errorf("cannot read %s %s: %w", kindOf[T](), key, err)
	}
	return ViewOf[T](rec)
}

// List reads all manifests of a declared kind within a pass, in order of their keys.
func List[T Specification](ctx context.Context) ([]View[T], error) {
	reader, err := readerOf(ctx, kindOf[T]())
	if err != nil {
		return nil, err
	}
	records, err := reader.List(ctx, kindOf[T]())
	if err != nil {
		return nil, fmt.Errorf("cannot list %s: %w", kindOf[T](), err)
	}
	views := make([]View[T], len(records))
	for i, rec := range records {
		if views[i], err = ViewOf[T](rec); err != nil {
			return nil, err
		}
	}
	return views, nil
}

// readerOf finds where a pass reads a kind from.
func readerOf(ctx context.Context, kind string) (Reader, error) {
	p, ok := ctx.Value(passKey{}).(*running)
	switch {
	case !ok || p.env.Reader == nil:
		return nil, fmt.Errorf("cannot read %s: %w", kind, ErrNotInPass)
	case !p.reads[kind]:
		return nil, fmt.Errorf("cannot read %s: %w", kind, ErrUndeclaredRead)
	}
	return p.env.Reader, nil
}
