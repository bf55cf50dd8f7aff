package supervision

import (
	"sync"
	"sync/atomic"
)

// slot is the place of a child in the tree; generations come and go in it.
type slot struct {
	path string
	// pool is set for the places of a pool's children, which may be forgotten and made anew.
	pool *pool
	// gen is the generation started last.
	gen   atomic.Uint64
	cell  atomic.Pointer[cell]
	fault atomic.Pointer[Fault]
}

// current returns the generation that takes messages now, or nil.
func (s *slot) current() *cell {
	if c := s.cell.Load(); c != nil || s.pool == nil {
		return c
	}
	return s.pool.current(s.path[len(s.pool.path)+1:])
}

// Ref is the logical address of a child; it reaches whichever generation is current. The
// zero Ref reaches nobody.
type Ref struct{ s *slot }

// Path is the address as text.
func (r Ref) Path() string {
	if r.s == nil {
		return ""
	}
	return r.s.path
}

// registry maps paths to slots. Children of pools are found through their pool.
type registry struct {
	mu    sync.RWMutex
	slots map[string]*slot
	pools map[string]*pool
}

func newRegistry() *registry {
	return &registry{slots: map[string]*slot{}, pools: map[string]*pool{}}
}

// find returns the slot of a path, or nil when nobody has asked for it yet.
func (r *registry) find(path string) *slot {
	r.mu.RLock()
	s := r.slots[path]
	r.mu.RUnlock()
	if s != nil {
		return s
	}
	if p, id := r.poolOf(path); p != nil {
		return p.slotOf(id)
	}
	return nil
}

// slot returns the slot of a path, making it if nobody has asked for it yet, so that a
// Ref may be taken before its child exists.
func (r *registry) slot(path string) *slot {
	if s := r.find(path); s != nil {
		return s
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.slots[path]; s != nil {
		return s
	}
	s := &slot{path: path}
	r.slots[path] = s
	return s
}

// poolOf finds the pool above path and the child's ID in it.
func (r *registry) poolOf(path string) (*pool, string) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for i := len(path) - 1; i > 0; i-- {
		if path[i] != '/' {
			continue
		}
		if p := r.pools[path[:i]]; p != nil {
			return p, path[i+1:]
		}
	}
	return nil, ""
}

func (r *registry) pool(path string) *pool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.pools[path]
}

func (r *registry) setPool(path string, p *pool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pools[path] = p
}
