package adapter

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"github.com/nodeactor/nodeactor/store/index"
)

// form is what an item means to one resource's storage.
type form struct {
	obj   runtime.Object // shared, never changed; has its resource version
	data  []byte         // encoded, without transformation
	stale bool           // the transformer wants it written again
}

// authenticated binds an encrypted value to its key.
type authenticated string

// AuthenticatedData implements value.Context.
func (a authenticated) AuthenticatedData() []byte { return []byte(a) }

// form returns the decoded form of item, decoding it the first time.
func (s *Store) form(ctx context.Context, item *index.Item) (*form, error) {
	if f := item.Forms().Get(s.owner); f != nil {
		return f.(*form), nil
	}
	f, err := s.open(ctx, item)
	if err != nil {
		return nil, err
	}
	if f.obj, err = s.decode(f.data, item.ModRevision); err != nil {
		return nil, s.corrupt(undecodable, err)
	}
	return item.Forms().Set(s.owner, f).(*form), nil
}

// open undoes the transformation of item.
func (s *Store) open(ctx context.Context, item *index.Item) (*form, error) {
	if s.plain {
		return &form{data: item.Value}, nil
	}
	data, stale, err := s.transformer.TransformFromStorage(ctx, item.Value, authenticated(item.Key))
	if err != nil {
		return nil, storage.NewInternalError(s.corrupt(untransformable, err))
	}
	return &form{data: data, stale: stale}, nil
}

func (s *Store) decode(data []byte, revision int64) (runtime.Object, error) {
	obj, _, err := s.cfg.Codec.Decode(data, nil, s.cfg.NewFunc())
	if err != nil {
		return nil, err
	}
	// An object without metadata has no version to set, and may be stored all the same.
	_ = s.versioner.UpdateObject(obj, uint64(revision))
	return obj, nil
}

// copyOut makes out a deep copy of obj.
func copyOut(obj, out runtime.Object) error {
	return assign(obj.DeepCopyObject(), out)
}

// assign makes out share everything with obj.
func assign(obj, out runtime.Object) error {
	from, to := reflect.ValueOf(obj), reflect.ValueOf(out)
	if from.Type() != to.Type() {
		return fmt.Errorf("cannot return a %T as a %T", obj, out)
	}
	to.Elem().Set(from.Elem())
	return nil
}

// at returns a shallow copy of obj with another resource version: how watchers see an object that is gone or left their selection.
func (s *Store) at(obj runtime.Object, revision int64) (runtime.Object, error) {
	out := obj.DeepCopyObject()
	if err := s.versioner.UpdateObject(out, uint64(revision)); err != nil {
		return nil, err
	}
	return out, nil
}
