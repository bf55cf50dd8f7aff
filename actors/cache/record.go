package cache

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// Record is one stored version of one object. It is a small value; its bytes and its decoded form are shared and immutable.
type Record struct {
	// Key is the full key in the store.
	Key string
	// Value is the stored encoding, never to be changed.
	Value []byte
	// ModRevision is the revision that wrote this version, which is the object's resourceVersion.
	ModRevision int64

	decoded Versioner
}

// NewRecord makes a Record whose decoded form lives in v.
func NewRecord(key string, value []byte, modRevision int64, v Versioner) Record {
	return Record{Key: key, Value: value, ModRevision: modRevision, decoded: v}
}

// Zero tells whether the record stands for nothing, as the old side of a creation does.
func (r Record) Zero() bool { return r.decoded == nil }

// Object is the external, versioned form: shared by all readers, decoded at most once, with its resourceVersion set.
func (r Record) Object() (runtime.Object, error) {
	if r.Zero() {
		return nil, fmt.Errorf("cannot decode %q: no stored version", r.Key)
	}
	return r.decoded.Versioned(r.decode)
}

func (r Record) decode(value []byte) (runtime.Object, error) {
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(value, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot decode %q: %w", r.Key, err)
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, fmt.Errorf("cannot decode %q: %w", r.Key, err)
	}
	accessor.SetResourceVersion(strconv.FormatInt(r.ModRevision, 10))
	return obj, nil
}

// As gives the record as a typed object; false when the record is zero, cannot be decoded or is of another type.
func As[T Object](r Record) (T, bool) {
	var none T
	if r.Zero() {
		return none, false
	}
	obj, err := r.Object()
	if err != nil {
		return none, false
	}
	typed, ok := obj.(T)
	return typed, ok
}
