package cache

import (
	"log/slog"
	"slices"
	"sync"
)

// Cache is the versioned read side over one Source. Make it with New; it outlives the actor that runs it.
type Cache struct {
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
}

// New makes a cache over a source. Typed reads work at once, indexes and feeds once Run has listed.
func New(source Source, log *slog.Logger) *Cache {
	return &Cache{source: source, log: log, index: newIndex(), moved: make(chan struct{}), asked: make(chan struct{}, 1)}
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
func (c *Cache) Subscribe(kinds ...Kind) *Feed {
	f := &Feed{cache: c, ready: make(chan struct{}, 1)}
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
