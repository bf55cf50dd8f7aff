// Package cachetest offers an in-memory source of stored objects for tests of the cache's readers.
package cachetest

import (
	"context"
	"sort"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/nodeactor/nodeactor/actors/cache"
)

// Memory is a cache.Source held in memory, storing the encodings the real store holds. It is safe for concurrent use.
type Memory struct {
	mu       sync.Mutex
	revision int64
	objects  map[string]cache.Record
	events   []cache.SourceEvent
	// cut is how many opened streams have been broken so far by Break.
	cut     int
	down    bool
	streams map[*stream]struct{}
}

// NewMemory makes an empty source at revision 1.
func NewMemory() *Memory {
	return &Memory{revision: 1, objects: map[string]cache.Record{}, streams: map[*stream]struct{}{}}
}

// versioner decodes once.
type versioner struct {
	value []byte
	once  sync.Once
	obj   runtime.Object
	err   error
}

// Versioned implements cache.Versioner.
func (v *versioner) Versioned(decode func([]byte) (runtime.Object, error)) (runtime.Object, error) {
	v.once.Do(func() { v.obj, v.err = decode(v.value) })
	return v.obj, v.err
}

// Put stores an object at its kind's key and returns the new revision.
func Put[T cache.Object](m *Memory, obj T) int64 {
	kind := cache.KindOf[T]()
	stored := obj.DeepCopyObject().(T)
	stored.SetResourceVersion("")
	stored.GetObjectKind().SetGroupVersionKind(kind.GroupVersionKind())
	value, err := runtime.Encode(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), stored)
	if err != nil {
		panic(err)
	}
	return m.PutBytes(kind.Key(obj.GetNamespace(), obj.GetName()), value)
}

// Delete removes an object and returns the new revision.
func Delete[T cache.Object](m *Memory, namespace, name string) int64 {
	return m.DeleteKey(cache.KindOf[T]().Key(namespace, name))
}

// PutBytes stores an encoding at a key.
func (m *Memory) PutBytes(key string, value []byte) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.revision++
	record := cache.NewRecord(key, value, m.revision, &versioner{value: value})
	m.objects[key] = record
	m.publish(cache.SourceEvent{Record: record, Revision: m.revision})
	return m.revision
}

// DeleteKey removes a key; nothing happens when it is absent.
func (m *Memory) DeleteKey(key string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	record, ok := m.objects[key]
	if !ok {
		return m.revision
	}
	m.revision++
	delete(m.objects, key)
	m.publish(cache.SourceEvent{Record: record, Deleted: true, Revision: m.revision})
	return m.revision
}

// Break loses every open stream, as an overflow or a compaction does.
func (m *Memory) Break() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cut++
	m.wake()
}

func (m *Memory) publish(e cache.SourceEvent) {
	m.events = append(m.events, e)
	m.wake()
}

func (m *Memory) wake() {
	for s := range m.streams {
		select {
		case s.signal <- struct{}{}:
		default:
		}
	}
}

// Revision implements cache.Source.
func (m *Memory) Revision() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down {
		return 0
	}
	return m.revision
}

// Get implements cache.Source.
func (m *Memory) Get(key string) (cache.Record, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.objects[key]
	return r, ok && !m.down
}

// List implements cache.Source.
func (m *Memory) List(prefix string) ([]cache.Record, int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down {
		return nil, 0
	}
	var records []cache.Record
	for key, r := range m.objects {
		if strings.HasPrefix(key, prefix) {
			records = append(records, r)
		}
	}
	sort.Slice(records, func(i, j int) bool { return records[i].Key < records[j].Key })
	return records, m.revision
}

// Follow implements cache.Source.
func (m *Memory) Follow(prefix string, after int64) cache.Stream {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &stream{source: m, prefix: prefix, after: after, cut: m.cut, signal: make(chan struct{}, 1)}
	m.streams[s] = struct{}{}
	return s
}

// Down makes the source answer nothing, as while its store is being opened again, until Up.
func (m *Memory) Down() { m.setDown(true) }

// Up ends Down.
func (m *Memory) Up() { m.setDown(false) }

func (m *Memory) setDown(down bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = down
	m.cut++
	m.wake()
}

// Skip moves the revision on without a change, as a write beside the objects does.
func (m *Memory) Skip() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.revision++
	return m.revision
}

type stream struct {
	source *Memory
	prefix string
	after  int64
	cut    int
	signal chan struct{}
}

// Poll implements cache.Stream.
func (s *stream) Poll(context.Context) ([]cache.SourceEvent, error) {
	m := s.source
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cut != s.cut {
		return nil, cache.ErrSourceLost
	}
	var events []cache.SourceEvent
	for _, e := range m.events {
		if e.Revision > s.after && strings.HasPrefix(e.Record.Key, s.prefix) {
			events = append(events, e)
		}
	}
	s.after = m.revision
	return events, nil
}

// Signal implements cache.Stream.
func (s *stream) Signal() <-chan struct{} { return s.signal }

// Revision implements cache.Stream.
func (s *stream) Revision() int64 { return s.after }

// Close implements cache.Stream.
func (s *stream) Close() {
	s.source.mu.Lock()
	defer s.source.mu.Unlock()
	delete(s.source.streams, s)
}
