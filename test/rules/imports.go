package rules

import (
	"strconv"
	"strings"
)

// floorOrder lists the floors from top to bottom; imports go from an earlier to a later or the same one.
var floorOrder = []string{"cmd", "program", "actors/node", "actors", "kubelet", "cluster", "store", "supervision"}

// mayUseTest are the commands that are made of test helpers: the demo image is built by the image builder of the tests.
var mayUseTest = []string{"cmd/demo-image"}

// floors finds imports that point up, and product code that imports test code.
func floors(t *Tree) []Finding {
	var found []Finding
	t.eachImport(func(f *File, target string, at func(string, ...any) Finding) {
		inside, ok := strings.CutPrefix(target, t.Module+"/")
		if !ok || f.Test || under(f.Dir(), "test") {
			return
		}
		from, to := floor(f.Dir()), floor(inside)
		switch {
		case under(inside, "test") && !under(f.Dir(), mayUseTest...):
			found = append(found, at("product code imports %s", inside))
		case from >= 0 && to >= 0 && to < from:
			found = append(found, at("%s is above %s and must not be imported from it", inside, floorOrder[from]))
		case inside != f.Dir() && under(inside, "cmd"):
			found = append(found, at("a command is imported: %s", inside))
		}
	})
	return found
}

// floor gives the position of a folder in floorOrder, -1 for one that is on none.
func floor(dir string) int {
	for i, name := range floorOrder {
		if under(dir, name) {
			return i
		}
	}
	return -1
}

// engine is a library that only one folder may import, so that replacing it touches one folder.
type engine struct{ prefix, folder string }

var engineFolders = []engine{
	{"github.com/asynkron/protoactor-go", "supervision"},
	{"github.com/opencontainers/runc", "kubelet/runtime"},
	{"github.com/opencontainers/cgroups", "kubelet/runtime"},
	{"go.etcd.io/etcd", "store"},
	{"go.etcd.io/bbolt", "store"},
	{"github.com/tidwall/btree", "store"},
	{"github.com/hashicorp/memberlist", "cluster"},
	{"github.com/google/go-containerregistry", "kubelet/images"},
	{"github.com/vishvananda/netlink", "kubelet"},
	{"github.com/google/nftables", "kubelet"},
}

// engines finds product code that imports an engine from a folder that is not its own. Tests may look behind the scenes.
func engines(t *Tree) []Finding {
	var found []Finding
	t.eachImport(func(f *File, target string, at func(string, ...any) Finding) {
		if f.Test || under(f.Dir(), "test") || under(f.Dir(), mayUseTest...) {
			return
		}
		for _, e := range engineFolders {
			if under(target, e.prefix) && !under(f.Dir(), e.folder) {
				found = append(found, at("%s may be imported by %s alone", e.prefix, e.folder))
			}
		}
	})
	return found
}

// eachImport visits all import lines.
func (t *Tree) eachImport(visit func(f *File, target string, at func(string, ...any) Finding)) {
	for _, f := range t.Files {
		for _, spec := range f.Syntax.Imports {
			target, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				continue
			}
			visit(f, target, func(format string, args ...any) Finding { return f.at(spec, format, args...) })
		}
	}
}
