package encryption

import (
	"context"
	"fmt"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"
)

// transformer encrypts one resource as the current configuration says.
type transformer struct {
	encryption *Encryption
	resource   schema.GroupResource
	last       atomic.Pointer[chosen]
}

// chosen is what a set has for a resource.
type chosen struct {
	of *set
	value.Transformer
}

func (t *transformer) current() value.Transformer {
	s := t.encryption.current.Load()
	if c := t.last.Load(); c != nil && c.of == s {
		return c.Transformer
	}
	c := &chosen{s, s.TransformerForResource(t.resource)}
	t.last.Store(c)
	return c.Transformer
}

// TransformFromStorage implements value.Transformer.
func (t *transformer) TransformFromStorage(ctx context.Context, data []byte, at value.Context) ([]byte, bool, error) {
	out, stale, err := t.current().TransformFromStorage(ctx, data, at)
	if err != nil {
		return nil, false, fmt.Errorf("cannot decrypt with the keys of %s: %w; put the key that it was written with back behind the others, "+
			"then write the object anew before the key is taken away", t.encryption.cfg.File, err)
	}
	return out, stale, nil
}

// TransformToStorage implements value.Transformer.
func (t *transformer) TransformToStorage(ctx context.Context, data []byte, at value.Context) ([]byte, error) {
	out, err := t.current().TransformToStorage(ctx, data, at)
	if err != nil {
		return nil, fmt.Errorf("cannot encrypt with the keys of %s: %w", t.encryption.cfg.File, err)
	}
	return out, nil
}

// Key binds an encrypted value to the key it is stored under.
type Key string

// AuthenticatedData implements value.Context.
func (k Key) AuthenticatedData() []byte { return []byte(k) }
