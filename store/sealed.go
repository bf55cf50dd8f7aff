package store

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/nodeactor/nodeactor/store/encryption"
	"github.com/nodeactor/nodeactor/store/index"
)

// Plain returns what item holds, without encryption. It is shared: nobody may change it.
func (s *Store) Plain(item *Item) ([]byte, error) {
	if !encryption.Sealed(item.Value) {
		return item.Value, nil
	}
	if s.cfg.Encryption == nil {
		return nil, fmt.Errorf("cannot read %s: it is encrypted, and %w", item.Key, errNoKeys)
	}
	resource, ok := s.resourceOf(index.DirOf(item.Key))
	if !ok {
		return nil, fmt.Errorf("cannot read %s: it is encrypted, and its resource is not known", item.Key)
	}
	t := s.cfg.Encryption.TransformerForResource(resource)
	return item.Plain(t, func() ([]byte, error) {
		data, _, err := t.TransformFromStorage(context.Background(), item.Value, encryption.Key(item.Key))
		return data, err
	})
}

// resourceOf is the resource stored in a directory: one that a storage was asked for, or the custom one of that name.
func (s *Store) resourceOf(dir string) (schema.GroupResource, bool) {
	if r, ok := s.sealers.Load(dir); ok {
		return r.(schema.GroupResource), true
	}
	group, resource, ok := strings.Cut(strings.Trim(strings.TrimPrefix(dir, index.Root), "/"), "/")
	return schema.GroupResource{Group: group, Resource: resource}, ok && strings.Contains(group, ".")
}

// FollowEncryption takes changes of the encryption configuration in until ctx ends, and says what cannot be read with it, at the start and after
// each change. Without one it says what would need one.
func (s *Store) FollowEncryption(ctx context.Context) error {
	s.lookForUndecryptable(ctx)
	if s.cfg.Encryption == nil {
		<-ctx.Done()
		return nil
	}
	return s.cfg.Encryption.Follow(ctx, s.Stored, func() { s.lookForUndecryptable(ctx) })
}

// Stored lists everything of known resources, as it is stored.
func (s *Store) Stored() iter.Seq[encryption.Stored] {
	return func(yield func(encryption.Stored) bool) {
		items, _ := s.List(index.Root)
		for _, item := range items {
			resource, ok := s.resourceOf(index.DirOf(item.Key))
			if ok && !yield(encryption.Stored{Resource: resource, Key: item.Key, Value: item.Value}) {
				return
			}
		}
	}
}
