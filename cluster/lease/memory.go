package lease

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Memory is a Store that lasts as long as its process. The zero value is empty.
type Memory struct {
	mu      sync.Mutex
	records map[string]Stored
	values  map[string][]byte
}

// Get implements Store.
func (m *Memory) Get(ctx context.Context, manifest string) (Stored, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.records[manifest], ctx.Err()
}

// List implements Store; visit sees the records as they were when List was called.
func (m *Memory) List(ctx context.Context, visit func(string, Stored) bool) error {
	m.mu.Lock()
	records := maps.Clone(m.records)
	m.mu.Unlock()
	for _, manifest := range slices.Sorted(maps.Keys(records)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !visit(manifest, records[manifest]) {
			return nil
		}
	}
	return ctx.Err()
}

// CompareAndAppend implements Store.
func (m *Memory) CompareAndAppend(ctx context.Context, w Write) (Revision, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	old := m.records[w.Manifest]
	if old.Revision != w.Expected {
		return 0, fmt.Errorf("cannot write the lease of %s at revision %d, it is at %d: %w", w.Manifest, w.Expected, old.Revision, ErrConflict)
	}
	if err := CheckNext(old.Record, w.Record); err != nil {
		return 0, fmt.Errorf("cannot write the lease of %s: %w", w.Manifest, err)
	}
	if m.records == nil {
		m.records = map[string]Stored{}
	}
	m.records[w.Manifest] = Stored{Record: w.Record, Revision: old.Revision + 1}
	return old.Revision + 1, nil
}

// WriteFenced implements Store.
func (m *Memory) WriteFenced(ctx context.Context, f Fence, key string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := f.Check(m.records[f.Manifest].Record); err != nil {
		return err
	}
	if m.values == nil {
		m.values = map[string][]byte{}
	}
	m.values[key] = bytes.Clone(value)
	return nil
}

// Read implements Store.
func (m *Memory) Read(ctx context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return bytes.Clone(m.values[key]), ctx.Err()
}
