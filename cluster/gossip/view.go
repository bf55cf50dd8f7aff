package gossip

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/hashicorp/memberlist"
)

// Node is one member as this host sees it.
type Node struct {
	// Name is the member's name in its present life, Addr where gossip reaches it.
	Name, Addr string
	Meta       Meta
}

// View is what this host believes about the cluster. The zero value is empty; all methods
// may be called from any goroutine.
type View struct {
	alive atomic.Pointer[[]Node]
	list  atomic.Pointer[memberlist.Memberlist]
}

// Alive lists the members that are not known to be dead, this host included, by name. The
// slice must not be changed.
func (v *View) Alive() []Node {
	if p := v.alive.Load(); p != nil {
		return *p
	}
	return nil
}

// read takes the list anew and tells whether it differs.
func (v *View) read(l *memberlist.Memberlist) (now []Node, changed bool) {
	for _, n := range l.Members() {
		// A peer that says nothing usable of itself is still a member.
		meta, _ := DecodeMeta(n.Meta)
		now = append(now, Node{n.Name, n.Address(), meta})
	}
	slices.SortFunc(now, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	changed = !slices.Equal(now, v.Alive())
	v.alive.Store(&now)
	return now, changed
}
