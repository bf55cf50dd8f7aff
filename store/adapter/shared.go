package adapter

import (
	"bytes"
	"io"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// sharedObject is the object of one event, encoded once for each encoder, however many watchers send it.
//
// It stands for its object wherever the API machinery looks at metadata, and hands out a copy to whoever wants to look deeper.
type sharedObject struct {
	metav1.Object
	object runtime.Object

	mu       sync.Mutex
	encoding map[runtime.Identifier]*encoding
}

// encoding is what one encoder made of the object.
type encoding struct {
	once sync.Once
	raw  []byte
	err  error
}

var (
	_ runtime.CacheableObject = (*sharedObject)(nil)
	_ metav1.Object           = (*sharedObject)(nil)
)

func newSharedObject(obj runtime.Object) *sharedObject {
	m, err := meta.Accessor(obj)
	if err != nil {
		m = &metav1.ObjectMeta{}
	}
	return &sharedObject{Object: m, object: obj}
}

func (o *sharedObject) of(id runtime.Identifier) *encoding {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.encoding[id]
	if e == nil {
		if o.encoding == nil {
			o.encoding = map[runtime.Identifier]*encoding{}
		}
		e = &encoding{}
		o.encoding[id] = e
	}
	return e
}

// CacheEncode implements runtime.CacheableObject.
func (o *sharedObject) CacheEncode(id runtime.Identifier, encode func(runtime.Object, io.Writer) error, w io.Writer) error {
	e := o.of(id)
	sent.Add(1)
	e.once.Do(func() {
		encoded.Add(1)
		var buf bytes.Buffer
		e.err = encode(o.GetObject(), &buf)
		e.raw = buf.Bytes()
	})
	if e.err != nil {
		return e.err
	}
	_, err := w.Write(e.raw)
	return err
}

// GetObject implements runtime.CacheableObject. The result is the caller's.
func (o *sharedObject) GetObject() runtime.Object { return o.object.DeepCopyObject() }

// GetObjectKind implements runtime.Object.
func (o *sharedObject) GetObjectKind() schema.ObjectKind { return o.object.GetObjectKind() }

// DeepCopyObject implements runtime.Object.
func (o *sharedObject) DeepCopyObject() runtime.Object {
	return newSharedObject(o.object.DeepCopyObject())
}
