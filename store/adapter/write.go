package adapter

import (
	"bytes"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"github.com/nodeactor/nodeactor/store/deepstack"
	"github.com/nodeactor/nodeactor/store/encryption"
	"github.com/nodeactor/nodeactor/store/engine"
	"github.com/nodeactor/nodeactor/store/index"
)

// Create implements storage.Interface.
func (s *Store) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	key, err := s.key(key, false)
	if err != nil {
		return err
	}
	if version, err := s.versioner.ObjectResourceVersion(obj); err == nil && version != 0 {
		return storage.ErrResourceVersionSetOnCreate
	}
	data, err := s.encode(obj)
	if err != nil {
		return err
	}
	f, done, err := s.put(ctx, key, data, 0, ttl)
	if err != nil {
		return err
	}
	if !done {
		return storage.NewKeyExistsError(key, 0)
	}
	if out == nil {
		return nil
	}
	return copyOut(f.obj, out)
}

// encode strips what is not stored from obj, in place, and encodes the rest.
func (s *Store) encode(obj runtime.Object) ([]byte, error) {
	if err := s.versioner.PrepareObjectForStorage(obj); err != nil {
		return nil, fmt.Errorf("cannot prepare object for storage: %w", err)
	}
	return runtime.Encode(s.cfg.Codec, obj)
}

// put writes data under key if its revision is expect, and returns what is then stored once everyone can read it.
// done is false when the revision was another one.
func (s *Store) put(ctx context.Context, key string, data []byte, expect int64, ttl uint64) (f *form, done bool, err error) {
	f = &form{data: data}
	// What was encoded is decoded again rather than kept: decoding defaults and rounds, and readers must see what a restart would show.
	if f.obj, err = s.decode(data, 0); err != nil {
		return nil, false, err
	}
	w := engine.Write{Key: key, Expect: expect, Value: data}
	if !s.plain {
		if w.Value, err = s.transformer.TransformToStorage(ctx, data, encryption.Key(key)); err != nil {
			return nil, false, storage.NewInternalError(err)
		}
	}
	w.Frees = s.frees(w, f.obj)
	w.Own = expect == 0 && identified(f.obj)
	if ttl != 0 {
		if w.Lease, err = s.backend.Lease(ctx, int64(ttl)); err != nil {
			return nil, false, s.fault(err)
		}
	}
	return s.commit(ctx, w, f)
}

// identified tells whether obj has an identity, which the API makes for each object it creates.
func identified(obj runtime.Object) bool {
	m, err := meta.Accessor(obj)
	return err == nil && m.GetUID() != ""
}

// commit runs the transaction with its decoded form parked, so that the index need not decode it again.
func (s *Store) commit(ctx context.Context, w engine.Write, f *form) (*form, bool, error) {
	parked := s.backend.Index.Park(w.Key, w.Value, func(item *index.Item) {
		_ = s.versioner.UpdateObject(f.obj, uint64(item.ModRevision))
		if !s.plain {
			_, _ = item.Plain(s.owner.transformer, func() ([]byte, error) { return f.data, nil })
		}
		item.Forms().Set(s.owner, f)
	})
	defer s.backend.Index.Unpark(w.Key, parked)
	res, err := s.transact(ctx, w)
	if err != nil || !res.Done {
		return nil, false, s.fault(err)
	}
	if parked.Item() == nil || parked.Item().ModRevision != res.Revision {
		f.obj = f.obj.DeepCopyObject()
		_ = s.versioner.UpdateObject(f.obj, uint64(res.Revision))
	}
	return f, true, nil
}

// transact does a write and waits until everyone here can read it. One that was done and is not to be seen must not pass for one that was
// not begun.
func (s *Store) transact(ctx context.Context, w engine.Write) (engine.Result, error) {
	res, err := s.backend.Engine.Txn(ctx, w)
	if err != nil {
		return res, err
	}
	if err = s.backend.Index.Wait(ctx, res.Revision); err != nil && res.Done {
		err = fmt.Errorf("%w: it was done, and cannot be seen yet: %w", engine.ErrUnknown, err)
	}
	return res, err
}

// state is what an update or a deletion starts from.
type state struct {
	*form
	rev  int64       // 0 = absent
	item *index.Item // what the form is of; nil when absent
}

// current returns what is stored under key now.
func (s *Store) current(ctx context.Context, key string, ignoreNotFound bool) (state, error) {
	if err := s.barrier(ctx); err != nil {
		return state{}, err
	}
	item, _ := s.backend.Index.Get(key)
	if item == nil {
		if !ignoreNotFound {
			return state{}, storage.NewKeyNotFoundError(key, 0)
		}
		return state{form: &form{}}, nil
	}
	f, err := s.form(ctx, item)
	if err != nil {
		return state{}, err
	}
	return state{form: f, rev: item.ModRevision, item: item}, nil
}

// GuaranteedUpdate implements storage.Interface. The suggestion is not used: looking into the index costs no more.
func (s *Store) GuaranteedUpdate(ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, _ runtime.Object) error {
	deepstack.Reserve() // the API calls on a new goroutine, and much of a request is done in tryUpdate
	key, err := s.key(key, false)
	if err != nil {
		return err
	}
	if _, err := conversion.EnforcePtr(destination); err != nil {
		return fmt.Errorf("cannot convert output object to pointer: %w", err)
	}
	for {
		st, err := s.current(ctx, key, ignoreNotFound)
		if err != nil {
			return err
		}
		f, done, err := s.tryUpdate(ctx, key, st, preconditions, tryUpdate)
		if err != nil {
			return err
		}
		if done {
			return copyOut(f.obj, destination)
		}
	}
}

// tryUpdate makes one attempt from st; done is false when somebody else wrote meanwhile.
func (s *Store) tryUpdate(ctx context.Context, key string, st state, pre *storage.Preconditions, update storage.UpdateFunc) (*form, bool, error) {
	input := s.input(st)
	if err := pre.Check(key, input); err != nil {
		return nil, false, err
	}
	ret, ttl, err := update(input, storage.ResponseMeta{ResourceVersion: uint64(st.rev)})
	if err != nil {
		return nil, false, err
	}
	data, err := s.encode(ret)
	if err != nil {
		return nil, false, err
	}
	if st.rev != 0 && bytes.Equal(data, st.data) {
		if _, stale, err := s.transform(ctx, st.item); err != nil || !stale {
			return st.form, true, err
		}
	}
	var seconds uint64
	if ttl != nil {
		seconds = *ttl
	}
	return s.put(ctx, key, data, st.rev, seconds)
}

// input is a copy of st for an update function to change.
func (s *Store) input(st state) runtime.Object {
	if st.rev == 0 {
		return s.cfg.NewFunc()
	}
	return st.obj.DeepCopyObject()
}

// Delete implements storage.Interface. The suggestion is not used: looking into the index costs no more.
func (s *Store) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, _ runtime.Object, opts storage.DeleteOptions) error {
	key, err := s.key(key, false)
	if err != nil {
		return err
	}
	if _, err := conversion.EnforcePtr(out); err != nil {
		return fmt.Errorf("cannot convert output object to pointer: %w", err)
	}
	unreadable := opts.ExpectTransformOrDecodeError && unsafeDeletion()
	for {
		st, err := s.deletable(ctx, key, unreadable)
		if err != nil {
			return err
		}
		rev, done, err := s.tryDelete(ctx, key, st, preconditions, validate)
		if err != nil {
			return err
		}
		if done && !unreadable {
			if err := copyOut(st.obj, out); err != nil {
				return err
			}
			return s.versioner.UpdateObject(out, uint64(rev))
		}
		if done {
			return nil
		}
	}
}

// deletable is what a deletion starts from. With unreadable only an object that cannot be decoded will do; it has no object then.
func (s *Store) deletable(ctx context.Context, key string, unreadable bool) (state, error) {
	if !unreadable {
		return s.current(ctx, key, false)
	}
	item, _ := s.backend.Index.Get(key)
	if item == nil {
		return state{}, storage.NewKeyNotFoundError(key, 0)
	}
	data, _, err := s.transform(ctx, item)
	if err == nil {
		_, err = s.decode(data, item.ModRevision)
	}
	if err == nil {
		return state{}, storage.NewInvalidObjError(key, "unsafe deletion is not allowed because the object is decodable from storage")
	}
	return state{form: &form{}, rev: item.ModRevision}, nil
}

func (s *Store) tryDelete(ctx context.Context, key string, st state, pre *storage.Preconditions, validate storage.ValidateObjectFunc) (int64, bool, error) {
	var view runtime.Object
	if st.obj != nil {
		view = st.obj.DeepCopyObject()
	}
	if pre != nil {
		if err := pre.Check(key, view); err != nil {
			return 0, false, err
		}
	}
	if err := validate(ctx, view); err != nil {
		return 0, false, err
	}
	res, err := s.transact(ctx, engine.Write{Key: key, Expect: st.rev, Delete: true})
	return res.Revision, res.Done, s.fault(err)
}
