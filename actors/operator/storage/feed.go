package storage

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/nodeactor/nodeactor/cluster/lease"
)

// feeds are the running watches of a store that is in this process.
type feeds struct {
	back backend
	mu   sync.Mutex
	// at is the revision up to which the feeds have been told of all changes.
	at     Revision
	all    []*feed
	closed bool
}

// feed knows which keys have changed; what they are now is read when it is taken. So a watcher that is slow costs a name for each thing
// that has changed, and never misses the last state of any.
type feed struct {
	of     *feeds
	filter Filter
	notify func()
	// dirty are the marked keys that have changed; guarded by the lock of all feeds.
	dirty map[string]struct{}
}

// wants tells whether a marked key is one that the watch is to tell of.
func (f Filter) wants(marked string) bool {
	if mark := marked[:1]; mark == objectMark && !f.Objects || mark == leaseMark && !f.Leases {
		return false
	}
	if f.Kinds == nil {
		return true
	}
	kind, _, _ := strings.Cut(marked[1:], "/")
	return slices.Contains(f.Kinds, kind)
}

// changed tells the feeds of keys that were written, up to a revision.
func (s *feeds) changed(keys []string, at Revision) {
	s.mu.Lock()
	s.at = max(s.at, at)
	var tell []func()
	for _, f := range s.all {
		if f.add(keys) {
			tell = append(tell, f.notify)
		}
	}
	s.mu.Unlock()
	for _, notify := range tell {
		notify()
	}
}

// add notes changes, and tells whether the watcher is to be told: it is not if it has something to take already.
func (f *feed) add(keys []string) bool {
	before := len(f.dirty)
	for _, key := range keys {
		if f.filter.wants(key) {
			f.dirty[key] = struct{}{}
		}
	}
	return before == 0 && len(f.dirty) > 0
}

func (s *feeds) watch(from Revision, filter Filter, notify func()) (*feed, error) {
	f := &feed{of: s, filter: filter, notify: notify, dirty: map[string]struct{}{}}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, ErrClosed
	}
	s.all = append(s.all, f)
	s.mu.Unlock()
	// What is written from here on is told; what was written before is looked up.
	keys, err := since(s.back, from)
	if err != nil {
		f.Close()
		return nil, err
	}
	s.mu.Lock()
	any := f.add(keys)
	s.mu.Unlock()
	if any {
		notify()
	}
	return f, nil
}

// since are the marked keys that were written after a revision.
func since(b backend, from Revision) (keys []string, err error) {
	err = b.view(func(t table) error {
		now := revisionOf(t)
		if from > now {
			return ErrCompacted // of another store, or of one that was put back
		}
		for r := from + 1; r <= now; r++ {
			key := t.get(history, revisionKey(r))
			if key == nil {
				return ErrCompacted
			}
			keys = append(keys, string(key))
		}
		return nil
	})
	return keys, err
}

// Take implements Feed.
func (f *feed) Take() ([]Change, error) {
	changes, _, err := f.take()
	return changes, err
}

// take also gives the revision up to which all changes have been taken: a watch can go on from there.
func (f *feed) take() (changes []Change, at Revision, err error) {
	f.of.mu.Lock()
	open := slices.Contains(f.of.all, f)
	var dirty map[string]struct{}
	if len(f.dirty) > 0 {
		dirty, f.dirty = f.dirty, map[string]struct{}{}
	}
	at = f.of.at
	f.of.mu.Unlock()
	if !open {
		return nil, 0, ErrClosed
	}
	if len(dirty) == 0 {
		return nil, at, nil
	}
	changes = make([]Change, 0, len(dirty))
	err = f.of.back.view(func(t table) error {
		now := revisionOf(t)
		for marked := range dirty {
			c, err := state(t, marked, f.filter.KeysOnly, now)
			if err != nil {
				return err
			}
			changes = append(changes, c)
		}
		return nil
	})
	slices.SortFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.key(), b.key()), cmp.Compare(a.Manifest, b.Manifest))
	})
	return changes, at, err
}

func (c Change) key() string {
	if c.Manifest != "" {
		return c.Manifest
	}
	return c.Object.Key()
}

// state is what a marked key is now. That of an object which does not exist has the revision of the store.
func state(t table, marked string, keysOnly bool, now Revision) (Change, error) {
	key := marked[1:]
	if marked[:1] == leaseMark {
		s, err := readLease(t, key)
		return Change{Revision: Revision(s.Revision), Manifest: key, Lease: s}, err
	}
	id, _ := ParseKey(key)
	revision, value := decodeObject(t.get(objects, key))
	if revision == 0 {
		return Change{Revision: now, Object: Object{ID: id, Revision: now}, Deleted: true}, nil
	}
	c := Change{Revision: revision, Object: Object{ID: id, Revision: revision}}
	if !keysOnly {
		c.Object.Value = slices.Clone(value)
	}
	return c, nil
}

// Close implements Feed.
func (f *feed) Close() {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	f.of.all = slices.DeleteFunc(f.of.all, func(o *feed) bool { return o == f })
}

func (s *feeds) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.all = nil
}

// holders are the sessions that hold leases.
func holders(b backend) (ids []lease.SessionID, err error) {
	seen := map[lease.SessionID]bool{{}: true}
	err = b.view(func(t table) error {
		var failed error
		err := t.each(leases, "", "", func(key string, value []byte) bool {
			var s lease.Stored
			if s, failed = decodeLease(value); failed == nil && !seen[s.Holder] {
				seen[s.Holder] = true
				ids = append(ids, s.Holder)
			}
			return failed == nil
		})
		if failed != nil {
			return failed
		}
		return err
	})
	return ids, err
}
