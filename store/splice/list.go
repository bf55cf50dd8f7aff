package splice

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// errShape is returned when an item behind the first window does not look as those before it did: the answer has begun already.
var errShape = errors.New("cannot encode list: an item's encoding does not look like the others'")

// buffers holds what lists were put together in.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// list is the encoding of one list, written a window of items at a time, or, in a format that tells the size first, in one piece.
type list struct {
	*encoder
	items reflect.Value
}

// splice encodes obj from its parts; false when it must be encoded as a whole, and nothing has been written then.
func (e *encoder) splice(obj runtime.Object, w io.Writer) (bool, error) {
	items, ok := typedItems(obj)
	if !ok || items.Len() > maxKept || isPage(obj) {
		return false, nil
	}
	l := &list{encoder: e, items: items}
	empty, err := runtime.Encode(e.inner, emptied(obj))
	if err != nil {
		return false, nil
	}
	buf := buffers.Get().(*[]byte)
	defer func() {
		if cap(*buf) <= maxPooled {
			buffers.Put(buf)
		}
	}()
	if e.format.sized() {
		return l.whole(empty, buf, w)
	}
	return l.windows(empty, buf, w)
}

// whole writes the list in one piece.
func (l *list) whole(empty []byte, buf *[]byte, w io.Writer) (bool, error) {
	raws, ok := l.parts(l.items)
	if !ok {
		return false, nil
	}
	size := 0
	for _, raw := range raws {
		size += len(raw)
	}
	head, tail, ok := l.format.frame(empty, size)
	if !ok {
		return false, nil
	}
	out := append((*buf)[:0], head...)
	for _, raw := range raws {
		out = append(out, raw...)
	}
	out = append(out, tail...)
	*buf = out
	_, err := w.Write(out)
	return true, err
}

// windows writes the list in pieces.
func (l *list) windows(empty []byte, buf *[]byte, w io.Writer) (begun bool, err error) {
	head, tail, ok := l.format.frame(empty, 0)
	if !ok {
		return false, nil
	}
	out := append((*buf)[:0], head...)
	defer func() { *buf = out[:0] }()
	n := l.items.Len()
	for at := 0; at < n; at += windowItems {
		if out, ok = l.window(out, at, min(at+windowItems, n)); !ok && at == 0 {
			return false, nil
		} else if !ok {
			return true, errShape
		}
		if at+windowItems >= n {
			out = append(out, tail...)
		}
		if _, err := w.Write(out); err != nil {
			return true, err
		}
		out = out[:0]
	}
	return true, nil
}

// window appends the items of [from, to).
func (l *list) window(out []byte, from, to int) ([]byte, bool) {
	raws, ok := l.parts(l.items.Slice(from, to))
	if !ok {
		return out, false
	}
	for i, raw := range raws {
		if from+i > 0 {
			out = append(out, l.format.separator()...)
		}
		out = append(out, raw...)
	}
	return out, true
}

// isPage reports whether the list is a page of a long one.
func isPage(obj runtime.Object) bool {
	m, err := meta.ListAccessor(obj)
	return err == nil && m.GetContinue() != ""
}

// parts returns the encodings of items.
func (e *encoder) parts(items reflect.Value) ([][]byte, bool) {
	keys, ok := e.keys(items)
	if !ok {
		return nil, false
	}
	raws := e.cache.get(keys, make([][]byte, 0, len(keys)))
	return raws, e.fill(items, keys, raws)
}

// fill encodes the items that were not kept, and keeps them.
func (e *encoder) fill(items reflect.Value, keys []key, raws [][]byte) bool {
	fresh := make([]bool, len(keys))
	some := false
	for i, raw := range raws {
		if raw != nil {
			continue
		}
		whole, err := runtime.Encode(e.inner, items.Index(i).Addr().Interface().(runtime.Object))
		if err != nil {
			return false
		}
		item, ok := e.format.item(whole)
		if !ok {
			return false
		}
		// What is kept is kept exactly: the buffer it was encoded in is larger.
		raws[i], fresh[i], some = bytes.Clone(item), true, true
	}
	if some {
		e.cache.add(keys, raws, fresh)
	}
	return true
}
