package splice

import (
	"io"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// minItems is the length from which on a list is worth the trouble.
	minItems = 16
	// maxKept is the length up to which a list's encodings are kept: a longer one would push out everything else, itself included. It is left
	// to the serializer, which writes one item after the other, and so are pages, which hardly anybody asks for again.
	maxKept = 4096
	// windowItems is how many items of a list are put together before they are written.
	windowItems = 512
	// maxPooled is the capacity in bytes up to which a buffer is kept for another list.
	maxPooled = 8 << 20
)

// Wrap returns ns with its encoders of JSON and protobuf splicing lists from c. The cache may be shared between serializers.
func Wrap(ns runtime.NegotiatedSerializer, c *Cache) runtime.NegotiatedSerializer {
	w := &serializer{NegotiatedSerializer: ns, cache: c, formats: map[runtime.Encoder]format{}}
	for _, info := range ns.SupportedMediaTypes() {
		switch info.MediaType {
		case runtime.ContentTypeJSON:
			w.formats[info.Serializer] = jsonFormat{}
		case runtime.ContentTypeProtobuf:
			w.formats[info.Serializer] = protobufFormat{}
		}
	}
	return w
}

type serializer struct {
	runtime.NegotiatedSerializer
	cache   *Cache
	formats map[runtime.Encoder]format
}

// EncoderForVersion implements runtime.NegotiatedSerializer.
func (s *serializer) EncoderForVersion(e runtime.Encoder, gv runtime.GroupVersioner) runtime.Encoder {
	inner := s.NegotiatedSerializer.EncoderForVersion(e, gv)
	f := s.format(e)
	if f == nil {
		return inner
	}
	return &encoder{inner: inner, format: f, cache: s.cache, id: s.cache.encoder(string(inner.Identifier()))}
}

// format returns how e writes, or nil when that is not known. An encoder that cannot be a map key is not known.
func (s *serializer) format(e runtime.Encoder) format {
	if !reflect.TypeOf(e).Comparable() {
		return nil
	}
	return s.formats[e]
}

// format is a wire format whose lists can be put together from items.
type format interface {
	// item reduces the encoding of an object to what it is within a list, in place; false when it does not look as expected.
	item(raw []byte) ([]byte, bool)
	// frame splits the encoding of an empty list into what comes before and behind items of size bytes; false when it does not look as expected.
	frame(empty []byte, size int) (head, tail []byte, ok bool)
	// separator comes between two items.
	separator() string
	// sized tells that the size has to be known before the first item is written.
	sized() bool
}

type encoder struct {
	inner  runtime.Encoder
	format format
	cache  *Cache
	id     int
}

// Identifier implements runtime.Encoder. What is written is the same, so the name may be.
func (e *encoder) Identifier() runtime.Identifier { return e.inner.Identifier() }

// Encode implements runtime.Encoder.
func (e *encoder) Encode(obj runtime.Object, w io.Writer) error {
	if done, err := e.splice(obj, w); done {
		return err
	}
	return e.inner.Encode(obj, w)
}

// EncodeWithAllocator implements runtime.EncoderWithAllocator.
func (e *encoder) EncodeWithAllocator(obj runtime.Object, w io.Writer, a runtime.MemoryAllocator) error {
	if done, err := e.splice(obj, w); done {
		return err
	}
	if inner, ok := e.inner.(runtime.EncoderWithAllocator); ok {
		return inner.EncodeWithAllocator(obj, w, a)
	}
	return e.inner.Encode(obj, w)
}

// typedItems returns the items of a list of many typed objects.
func typedItems(obj runtime.Object) (reflect.Value, bool) {
	if _, ok := obj.(runtime.Unstructured); ok || !meta.IsListType(obj) {
		return reflect.Value{}, false
	}
	ptr, err := meta.GetItemsPtr(obj)
	if err != nil {
		return reflect.Value{}, false
	}
	items := reflect.ValueOf(ptr).Elem()
	if items.Kind() != reflect.Slice || items.Len() < minItems || items.Type().Elem().Kind() != reflect.Struct {
		return reflect.Value{}, false
	}
	if _, ok := items.Index(0).Addr().Interface().(runtime.Object); !ok {
		return reflect.Value{}, false
	}
	return items, true
}

// keys names the encodings of items; false when one has no identity.
func (e *encoder) keys(items reflect.Value) ([]key, bool) {
	keys := make([]key, items.Len())
	kind := items.Type().Elem()
	for i := range keys {
		m, ok := items.Index(i).Addr().Interface().(metav1.Object)
		if !ok {
			return nil, false
		}
		keys[i] = key{m.GetUID(), m.GetResourceVersion(), kind, e.id}
		if keys[i].uid == "" || keys[i].version == "" {
			return nil, false
		}
	}
	return keys, true
}

// emptied returns a shallow copy of a list with no items.
func emptied(list runtime.Object) runtime.Object {
	out := reflect.New(reflect.TypeOf(list).Elem())
	out.Elem().Set(reflect.ValueOf(list).Elem())
	ptr, _ := meta.GetItemsPtr(out.Interface().(runtime.Object))
	items := reflect.ValueOf(ptr).Elem()
	items.Set(reflect.MakeSlice(items.Type(), 0, 0))
	return out.Interface().(runtime.Object)
}
