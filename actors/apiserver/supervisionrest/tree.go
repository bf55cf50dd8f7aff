package supervisionrest

import (
	"strings"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// Tree is what is served; *supervision.System is one.
type Tree interface {
	// Look reads one actor, Scan all behind a path until f returns false; a piece of the tree at a time.
	Look(path string) (supervision.Node, bool)
	Scan(after string, f func(supervision.Node) bool)
	// Watch calls f for every later change of an actor's state; f does not block.
	Watch(f func(supervision.Change)) (cancel func())
	// LastCPU is the last measurement of CPU shares, nil before the first.
	LastCPU() *supervision.CPUShares
	// Spec is what the tree was started with, nil before; it is not changed any more.
	Spec() *supervision.Spec
	// Clock is the clock of the tree.
	Clock() supervision.Clock
}

const (
	// separator stands for the / of a path in a name.
	separator = ":"
	// members stands for the members of a pool in the path of their policy.
	members = "*"
)

// Name is the name of the object of a path.
func Name(path string) string { return strings.ReplaceAll(path, "/", separator) }

// Path is the way back. Only the tree knows it, because the names of a pool's members may have a colon themselves; "" when there is no such
// place in the tree.
func Path(root *supervision.Spec, name string) string {
	if root == nil {
		return ""
	}
	rest, below := strings.CutPrefix(name, root.ID)
	if !below {
		return ""
	}
	return pathBelow(root, root.ID, rest)
}

// pathBelow follows rest, which is empty or begins with a separator, from the child at path.
func pathBelow(s *supervision.Spec, path, rest string) string {
	id, below := strings.CutPrefix(rest, separator)
	switch {
	case rest == "":
		return path
	case !below || id == "":
		return ""
	case isPool(s):
		return path + "/" + id
	}
	for i := range s.Children {
		c := &s.Children[i]
		if after, ok := strings.CutPrefix(id, c.ID); ok && (after == "" || strings.HasPrefix(after, separator)) {
			return pathBelow(c, path+"/"+c.ID, after)
		}
	}
	return ""
}

func isPool(s *supervision.Spec) bool {
	return s.Kind == core.Supervisor && s.Group.Strategy == core.Pool
}

// place finds what was declared about a path, and the path of its policy, which the members of a pool share; nil when nothing was.
func place(root *supervision.Spec, path string) (s *supervision.Spec, policy string) {
	if root == nil || path == root.ID {
		return root, path
	}
	s, rest := root, strings.TrimPrefix(path, root.ID+"/")
	for !isPool(s) {
		id, after, more := strings.Cut(rest, "/")
		if s = child(s, id); s == nil || !more {
			return s, path
		}
		rest = after
	}
	return s.Template, path[:len(path)-len(rest)] + members
}

func child(s *supervision.Spec, id string) *supervision.Spec {
	for i := range s.Children {
		if s.Children[i].ID == id {
			return &s.Children[i]
		}
	}
	return nil
}
