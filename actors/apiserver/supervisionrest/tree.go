package supervisionrest

import (
	"slices"
	"strings"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// Tree is what is served; *supervision.System is one.
type Tree interface {
	// Inspect reads the whole tree.
	Inspect() supervision.Tree
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

// walkAfter calls f for the nodes from n on in the order of the tree, parents first, until f returns false. It begins behind the path after,
// which lies below n or is n, or with n itself when after is empty.
func walkAfter(n supervision.Node, after string, f func(supervision.Node) bool) bool {
	first := 0
	switch after {
	case "":
		if !f(n) {
			return false
		}
	case n.Path:
		after = ""
	default:
		first, after = resume(n.Children, after)
	}
	for _, c := range n.Children[first:] {
		if !walkAfter(c, after, f) {
			return false
		}
		after = ""
	}
	return true
}

// resume finds the child to go on with. The child that after lies in may be gone, if it was a pool's member; those are in the order of
// their paths.
func resume(children []supervision.Node, after string) (first int, rest string) {
	for i, c := range children {
		if c.Path == after || strings.HasPrefix(after, c.Path+"/") {
			return i, after
		}
	}
	first = slices.IndexFunc(children, func(c supervision.Node) bool { return c.Path > after })
	if first < 0 {
		first = len(children)
	}
	return first, ""
}
