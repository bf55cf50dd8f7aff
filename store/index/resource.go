package index

import (
	"sort"
	"strings"
	"sync/atomic"

	"github.com/tidwall/btree"
)

// Root is the directory of all keys that are indexed.
const Root = "/registry/"

// treeDegree is the fan-out of the trees; 32 measured best for lists and for copying on write.
const treeDegree = 32

type tree = btree.BTreeG[*Item]

// resource is the directory of one kind.
type resource struct {
	dir   string
	tree  *tree                // changed only by the writer, under the index lock
	snap  atomic.Pointer[tree] // a frozen copy of tree, nil after a change
	ring  ring
	last  int64 // revision of the newest event
	subs  []*Subscription
	bytes int64
}

// newResource returns an empty resource of which nothing before the revision loaded is known: a deletion leaves no trace in a state.
func newResource(dir string, loaded int64, limit int) *resource {
	less := func(a, b *Item) bool { return a.Key < b.Key }
	return &resource{
		dir:  dir,
		tree: btree.NewBTreeGOptions(less, btree.Options{NoLocks: true, Degree: treeDegree}),
		ring: ring{floor: loaded, limit: limit},
		last: loaded,
	}
}

// DirOf returns the resource directory of a key: one path element below the root, or two when the first is a group of custom
// resources (it has a dot) or of services.
func DirOf(key string) string {
	rest, ok := strings.CutPrefix(key, Root)
	if !ok {
		return ""
	}
	n := strings.IndexByte(rest, '/')
	if n < 0 {
		return key + "/"
	}
	if first := rest[:n]; first == "services" || strings.IndexByte(first, '.') >= 0 {
		if m := strings.IndexByte(rest[n+1:], '/'); m >= 0 {
			n += 1 + m
		} else {
			return key + "/"
		}
	}
	return key[:len(Root)+n+1]
}

// overlaps reports whether keys with prefix may lie in dir.
func overlaps(dir, prefix string) bool {
	return strings.HasPrefix(dir, prefix) || strings.HasPrefix(prefix, dir)
}

// Snapshot is the state of one resource at a revision. It never changes.
type Snapshot struct {
	tree     *tree
	Revision int64 // of the store when it was taken
	Last     int64 // of the resource's newest event then: the state has been this since
}

// Len is the number of items.
func (s Snapshot) Len() int {
	if s.tree == nil {
		return 0
	}
	return s.tree.Len()
}

// Get returns the item of key.
func (s Snapshot) Get(key string) (*Item, bool) {
	if s.tree == nil {
		return nil, false
	}
	return s.tree.Get(&Item{Key: key})
}

// Ascend calls f for the items with prefix whose key is at least from, in key order, until f returns false.
func (s Snapshot) Ascend(prefix, from string, f func(*Item) bool) {
	if s.tree == nil {
		return
	}
	s.tree.Ascend(&Item{Key: max(prefix, from)}, func(i *Item) bool {
		return strings.HasPrefix(i.Key, prefix) && f(i)
	})
}

// Count is the number of items with prefix, which is not empty, whose key is at least from. It looks at a few items only, however many there
// are: each page of a list says how many come behind it.
func (s Snapshot) Count(prefix, from string) int64 {
	return int64(max(0, s.rank(After(prefix))-s.rank(max(prefix, from))))
}

// rank is the number of items whose key is less.
func (s Snapshot) rank(key string) int {
	return sort.Search(s.Len(), func(i int) bool {
		item, _ := s.tree.GetAt(i)
		return item.Key >= key
	})
}
