package cache

import (
	"log/slog"
	"slices"
	"sync"
)

// Cache is the versioned read side over one Source. Make it with New; it outlives the actor that runs it.
type Cache struct {
	*shared
	// declared are the kinds that may be read through this handle; nil for all.
	declared map[Kind]bool
}

// shared is what all handles of one cache have in common.
type shared struct {
	source Source
	log    *slog.Logger

	// mu guards what follows. It is never held over a wait.
	mu      sync.RWMutex
	index   *index
	feeds   []*Feed
	applied int64
	// moved is closed and replaced whenever applied grows.
	moved chan struct{}

	// asked holds a token when a reader waits for a revision.
	asked chan struct{}

	// undeclared are the kinds that were read through a handle that does not declare them.
	undeclared sync.Map
}

// New makes a cache over a source. Typed reads work at once, indexes and feeds once Run has listed.
func New(source Source, log *slog.Logger) *Cache {
	return &Cache{shared: &shared{source: source, log: log, index: newIndex(), moved: make(chan struct{}), asked: make(chan struct{}, 1)}}
}

// Revision is the newest revision of the source, which is what typed reads see.
func (c *Cache) Revision() int64 { return c.source.Revision() }

// Applied is the newest revision the indexes and feeds have seen.
func (c *Cache) Applied() int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.applied
}

// Subscribe opens a feed of the changes of some kinds after now; of everything when none is named. Subscribe first, then list:
// what happens in between is then seen at least once.
func (c *Cache) Subscribe(kinds ...Kind) *Feed { return c.SubscribeFunc(nil, kinds...) }

// SubscribeFunc is Subscribe for a reader that does not wait: notify is called when there is something to Take. It must be quick and must
// not call the cache.
func (c *Cache) SubscribeFunc(notify func(), kinds ...Kind) *Feed {
	f := &Feed{cache: c, ready: make(chan struct{}, 1), notify: notify}
	for _, kind := range kinds {
		f.prefixes = append(f.prefixes, kind.Prefix())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.feeds = append(c.feeds, f)
	return f
}

func (c *Cache) forget(f *Feed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.feeds = slices.DeleteFunc(c.feeds, func(other *Feed) bool { return other == f })
}

// Declare gives a handle for a reader that says what it reads; the zero Kind stands for everything. Other reads are answered too,
// but logged and kept for Undeclared: what is read without being declared does not wake its reader.
func (c *Cache) Declare(kinds ...Kind) *Cache {
	declared := map[Kind]bool{}
	for _, kind := range kinds {
		declared[kind] = true
	}
	return &Cache{shared: c.shared, declared: declared}
}

// Undeclared lists the kinds that were read through handles that do not declare them, for tests.
func (c *Cache) Undeclared() []Kind {
	var kinds []Kind
	c.undeclared.Range(func(kind, _ any) bool { kinds = append(kinds, kind.(Kind)); return true })
	return kinds
}

// noteRead checks a read against what the handle declares.
func (c *Cache) noteRead(kind Kind) {
	if c.declared == nil || c.declared[kind] || c.declared[Kind{}] {
		return
	}
	if _, known := c.undeclared.LoadOrStore(kind, true); !known {
		c.log.Error("a reader reads a kind it does not declare", "kind", kind.Name)
	}
}
