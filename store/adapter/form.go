package adapter

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"github.com/nodeactor/nodeactor/store/encryption"
	"github.com/nodeactor/nodeactor/store/index"
)

// errSealed is returned when an encrypted object is read by a store that was told no keys.
var errSealed = errors.New("the object is encrypted and the node was started without the keys; name their file with --encryption-provider-config")

// form is what an item means to one resource's storage.
type form struct {
	obj  runtime.Object // shared, never changed; has its resource version
	data []byte         // encoded, without transformation
}

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

// open returns the value of item without its transformation, undone the first time.
func (s *Store) open(ctx context.Context, item *index.Item) (*form, error) {
	if s.plain {
		data, _, err := s.transform(ctx, item)
		return &form{data: data}, err
	}
	data, err := item.Plain(s.owner.transformer, func() ([]byte, error) {
		data, _, err := s.transform(ctx, item)
		return data, err
	})
	if err != nil {
		return nil, err
	}
	return &form{data: data}, nil
}

// transform undoes the transformation of item. It is stale when the transformer wants it written again, which may change with the keys.
func (s *Store) transform(ctx context.Context, item *index.Item) (data []byte, stale bool, err error) {
	switch {
	case !s.plain:
		data, stale, err = s.transformer.TransformFromStorage(ctx, item.Value, encryption.Key(item.Key))
	case encryption.Sealed(item.Value):
		err = errSealed
	default:
		data = item.Value
	}
	if err != nil {
		return nil, false, storage.NewInternalError(s.corrupt(untransformable, err))
	}
	return data, stale, nil
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
