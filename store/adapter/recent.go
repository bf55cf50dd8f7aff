package adapter

import (
	"sync"

	"github.com/nodeactor/nodeactor/store/index"
)

// maxRecent bounds the states kept for lists that clients read in pages.
const maxRecent = 8

// recent keeps the states from which first pages were served, so that the next pages see the same. A state costs what has changed since.
type recent struct {
	mu    sync.Mutex
	snaps []index.Snapshot // oldest first
}

// keep remembers s as the state at revision; states from before the compacted revision are let go.
func (r *recent) keep(s index.Snapshot, revision, compacted int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := r.snaps[:0]
	for _, o := range r.snaps {
		if o.Revision >= compacted && o.Revision != revision {
			kept = append(kept, o)
		}
	}
	if len(kept) >= maxRecent {
		kept = kept[1:]
	}
	s.Revision = revision
	clear(r.snaps[len(kept):])
	r.snaps = append(kept, s)
}

// at returns the state kept for revision.
func (r *recent) at(revision int64) (index.Snapshot, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.snaps {
		if s.Revision == revision {
			return s, true
		}
	}
	return index.Snapshot{}, false
}
