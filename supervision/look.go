package supervision

import (
	"slices"
	"strings"
)

// chunk is how many members of a pool are read at once.
const chunk = 512

// Spec is what the tree was started with, overrides included; nil before Start. It is not to be
// changed.
func (s *System) Spec() *Spec {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spec
}

// Look reads one child, without what is below it; false when there is none at path.
func (s *System) Look(path string) (n Node, ok bool) {
	v, root := s.reading()
	v.shallow = true
	if root == nil {
		return n, false
	}
	if path == root.slot.path {
		return v.top(root), true
	}
	if p, id := s.reg.poolOf(path); p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		return v.member(p, id)
	}
	sup, i := s.parent(path)
	if sup == nil {
		return n, false
	}
	sup.mu.Lock()
	st, c := sup.group.Children()[i], sup.cells[i]
	sup.mu.Unlock()
	return v.child(sup, i, c, &st), true
}

// Scan calls f for every child in the order of the tree, parents first and the members of a
// pool by their IDs, until f returns false. It begins behind the path after, or with the root
// when after is empty. Unlike Inspect it holds only a part of the tree at a time; each node
// comes without what is below it.
func (s *System) Scan(after string, f func(Node) bool) {
	v, root := s.reading()
	v.shallow = true
	if root == nil {
		return
	}
	if after != "" || f(v.top(root)) {
		v.below(root, strings.TrimPrefix(strings.TrimPrefix(after, root.slot.path), "/"), f)
	}
}

// below scans what is below a cell, behind the path after, which is relative to it.
func (v *view) below(c *cell, after string, f func(Node) bool) bool {
	c.mu.Lock()
	h := c.handler
	c.mu.Unlock()
	switch h := h.(type) {
	case *supervisor:
		return v.scanGroup(h, after, f)
	case *pool:
		return v.scanPool(h, after, f)
	}
	return true
}

func (v *view) scanGroup(s *supervisor, after string, f func(Node) bool) bool {
	states, cells := s.snapshot()
	id, rest, _ := strings.Cut(after, "/")
	for i := range states {
		switch {
		case id == "":
			if !f(v.child(s, i, cells[i], &states[i])) {
				return false
			}
		case states[i].Spec.ID != id:
			continue
		}
		if cells[i] != nil && !v.below(cells[i], rest, f) {
			return false
		}
		id, rest = "", ""
	}
	return true
}

// scanPool looks for the lowest IDs first, which is all that most scans want, and sorts the
// others only if it has to.
func (v *view) scanPool(p *pool, after string, f func(Node) bool) bool {
	lowest := v.lowest(p, after)
	if !v.each(p, lowest, f) {
		return false
	}
	if len(lowest) < chunk {
		return true
	}
	for some := range slices.Chunk(v.sorted(p, lowest[chunk-1]), chunk) {
		if !v.each(p, some, f) {
			return false
		}
	}
	return true
}

// lowest returns the IDs that come first behind after, in order, at most a chunk of them.
func (v *view) lowest(p *pool, after string) (ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range v.ids(p) {
		if id <= after || len(ids) == chunk && id > ids[chunk-1] {
			continue
		}
		i, _ := slices.BinarySearch(ids, id)
		ids = slices.Insert(ids[:min(len(ids), chunk-1)], i, id)
	}
	return ids
}

// sorted returns all IDs behind after.
func (v *view) sorted(p *pool, after string) (ids []string) {
	p.mu.Lock()
	for id := range v.ids(p) {
		if id > after {
			ids = append(ids, id)
		}
	}
	p.mu.Unlock()
	slices.Sort(ids)
	return ids
}

// each reads members, those that are gone by now left out, and calls f with no lock held.
func (v *view) each(p *pool, ids []string, f func(Node) bool) bool {
	nodes := make([]Node, 0, len(ids))
	p.mu.Lock()
	for _, id := range ids {
		if n, ok := v.member(p, id); ok {
			nodes = append(nodes, n)
		}
	}
	p.mu.Unlock()
	for _, n := range nodes {
		if !f(n) {
			return false
		}
	}
	return true
}
