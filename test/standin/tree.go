package standin

import (
	"slices"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// Node is one child of the tree as it is declared, members of pools included.
type Node struct {
	Path   string
	Spec   *supervision.Spec
	Parent *Node
	// Index is its place among its siblings.
	Index int
	Kids  []*Node
	// Member is set below a pool.
	Member bool
}

// Declared reads a tree, parents first. Pools hold what Members says.
func Declared(root *supervision.Spec) []*Node {
	return declare(nil, &Node{Path: root.ID, Spec: root})
}

func declare(all []*Node, n *Node) []*Node {
	all = append(all, n)
	add := func(spec *supervision.Spec, id string, member bool) {
		kid := &Node{Path: n.Path + "/" + id, Spec: spec, Parent: n, Index: len(n.Kids), Member: member}
		n.Kids = append(n.Kids, kid)
		all = declare(all, kid)
	}
	for i := range n.Spec.Children {
		add(&n.Spec.Children[i], n.Spec.Children[i].ID, false)
	}
	if n.Spec.Template != nil {
		for _, id := range Members(n.Spec.ID) {
			add(n.Spec.Template, id, true)
		}
	}
	return all
}

// Unknown lists the rows of workers whose habits nobody has written down.
func Unknown(nodes []*Node) (rows []string) {
	for _, n := range nodes {
		if _, ok := Of[n.Spec.Row]; !ok && n.Spec.Kind == core.Worker && !slices.Contains(rows, n.Spec.Row) {
			rows = append(rows, n.Spec.Row)
		}
	}
	return rows
}

// Fill returns a copy of a blueprint whose workers are the stand-ins of this world.
func (w *World) Fill(blueprint supervision.Spec) supervision.Spec {
	return w.fill(blueprint, blueprint.ID)
}

func (w *World) fill(s supervision.Spec, path string) supervision.Spec {
	switch {
	case s.Template != nil:
		w.templates[path] = s.Template.ChildSpec
	case s.Kind == core.Worker:
		spec := s.ChildSpec
		s.Start = func() supervision.Handler { return w.code(path, spec) }
	}
	s.Children = slices.Clone(s.Children)
	for i, c := range s.Children {
		s.Children[i] = w.fill(c, path+"/"+c.ID)
	}
	return s
}
