package splice

import (
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// key names one encoding of one version of an object.
type key struct {
	uid     types.UID
	version string
	kind    reflect.Type // two views of one object have the same UID
	encoder int
}

// entryBytes is what an entry costs beside its bytes, roughly.
const entryBytes = 160

// Cache keeps encodings within a budget. It drops what has not been used since it was last half full.
type Cache struct {
	budget int

	mu       sync.Mutex
	young    map[key][]byte
	old      map[key][]byte
	bytes    int // of young
	encoders map[string]int
}

// NewCache returns a cache of at most about budget bytes.
func NewCache(budget int) *Cache {
	return &Cache{budget: budget, young: map[key][]byte{}, encoders: map[string]int{}}
}

// encoder numbers the encoders by name.
func (c *Cache) encoder(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.encoders[name]
	if !ok {
		n = len(c.encoders)
		c.encoders[name] = n
	}
	return n
}

// get appends the encodings of keys to out, nil for those that are not kept.
func (c *Cache) get(keys []key, out [][]byte) [][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range keys {
		raw, ok := c.young[k]
		if !ok {
			if raw, ok = c.old[k]; ok {
				c.addLocked(k, raw)
			}
		}
		out = append(out, raw)
	}
	return out
}

// add keeps the encodings that fresh marks.
func (c *Cache) add(keys []key, raws [][]byte, fresh []bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, k := range keys {
		if fresh[i] {
			c.addLocked(k, raws[i])
		}
	}
}

func (c *Cache) addLocked(k key, raw []byte) {
	if c.bytes > c.budget/2 {
		c.old, c.young, c.bytes = c.young, map[key][]byte{}, 0
	}
	c.young[k] = raw
	c.bytes += len(raw) + entryBytes
}
