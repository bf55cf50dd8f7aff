package storage

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// MemoryStore is a Store that lasts as long as its process.
type MemoryStore struct{ *local }

// Memory makes an empty store. None of its methods waits for anything.
func Memory(opts ...Option) *MemoryStore {
	back := &ram{buckets: map[string]map[string][]byte{}, sorted: map[string][]string{}}
	return &MemoryStore{newLocal(back, chosen(opts), 0, nil, newDirectWriter)}
}

// ram is a backend of maps.
type ram struct {
	mu      sync.RWMutex
	buckets map[string]map[string][]byte
	closed  bool
	past    past

	sortMu sync.Mutex
	// sorted are the keys of a bucket in order, once somebody has asked for them and until one is added or removed.
	sorted map[string][]string
}

func (r *ram) view(f func(table) error) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.closed {
		return ErrClosed
	}
	return f(ramTable{r})
}

// update relies on transactions that check before they write: here no write fails.
func (r *ram) update(f func(table) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return ErrClosed
	}
	return f(ramTable{r})
}

func (r *ram) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed, r.buckets = true, nil
	return nil
}

// ramTable is a ram whose lock is held.
type ramTable struct{ *ram }

func (r ramTable) get(bucket, key string) []byte {
	if bucket == history {
		return r.past.get(key)
	}
	return r.buckets[bucket][key]
}

func (r ramTable) put(bucket, key string, value []byte) error {
	if bucket == history {
		r.past.put(key, value)
		return nil
	}
	if r.buckets[bucket] == nil {
		r.buckets[bucket] = map[string][]byte{}
	}
	if _, there := r.buckets[bucket][key]; !there {
		delete(r.sorted, bucket)
	}
	r.buckets[bucket][key] = value
	return nil
}

func (r ramTable) remove(bucket, key string) error {
	if bucket == history {
		r.past.forget(key)
		return nil
	}
	delete(r.buckets[bucket], key)
	delete(r.sorted, bucket)
	return nil
}

// keys are those of a bucket in order.
func (r *ram) keys(bucket string) []string {
	r.sortMu.Lock()
	defer r.sortMu.Unlock()
	if r.sorted[bucket] == nil {
		r.sorted[bucket] = slices.Sorted(maps.Keys(r.buckets[bucket]))
	}
	return r.sorted[bucket]
}

func (r ramTable) each(bucket, prefix, after string, visit func(string, []byte) bool) error {
	keys := r.keys(bucket)
	first, found := slices.BinarySearch(keys, max(after, prefix))
	if found && after >= prefix && after != "" {
		first++
	}
	for _, key := range keys[first:] {
		if !strings.HasPrefix(key, prefix) || !visit(key, r.buckets[bucket][key]) {
			return nil
		}
	}
	return nil
}

// past is the history of a ram: revisions come one after the other, so that a list holds them.
type past struct {
	// before is the revision before the first.
	before Revision
	names  []string
}

func (p *past) get(key string) []byte {
	i := revisionOfKey(key) - p.before - 1 // of what was forgotten it is huge
	if i >= Revision(len(p.names)) {
		return nil
	}
	return []byte(p.names[i])
}

func (p *past) put(_ string, name []byte) { p.names = append(p.names, string(name)) }

// forget forgets all up to a revision.
func (p *past) forget(key string) {
	n := min(revisionOfKey(key)-p.before, Revision(len(p.names)))
	p.names, p.before = p.names[n:], p.before+n
}
