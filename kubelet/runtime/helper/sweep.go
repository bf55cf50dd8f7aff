package helper

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nodeactor/nodeactor/kubelet/runtime/wire"
)

// sweep removes every container, sandbox and cgroup that the request does not name.
func sweep(c *call) error {
	var r wire.SweepRequest
	if err := c.decode(&r); err != nil {
		return err
	}
	failed := errors.Join(sweepCgroups(c, &r), sweepDirs(c, &r))
	if failed != nil {
		return failed
	}
	return c.answer(wire.Reply{})
}

// sweepCgroups kills and removes unknown groups below the root; the groups of classes and known pods are walked into.
func sweepCgroups(c *call, r *wire.SweepRequest) error {
	known := map[string]bool{r.CgroupRoot: true} // the value says whether to look inside
	for _, path := range r.Pods {
		known[path] = true
		known[filepath.Dir(path)] = true
	}
	for _, path := range r.Containers {
		known[path] = false
	}
	unknown, err := unknownCgroups(r.CgroupRoot, known)
	if err != nil {
		return err
	}
	var failed error
	for path, yes := range unknown {
		if !yes {
			continue
		}
		c.note("removing unknown cgroup %s", path)
		if err := killAll(path, r.WaitMS); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		failed = errors.Join(failed, removePodCgroup(r.Layout, path))
	}
	return failed
}

// unknownCgroups are the topmost groups below root that are not known, over all hierarchies. What lies in a container's
// group is the container's.
func unknownCgroups(root string, known map[string]bool) (map[string]bool, error) {
	out := map[string]bool{}
	dirs, err := hierarchies(root)
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil //nolint:nilerr // a group that went away meanwhile is not unknown
			}
			name := filepath.Join(root, strings.TrimPrefix(path, dir))
			inside, ok := known[name]
			out[name] = !ok
			if !ok || !inside {
				return fs.SkipDir
			}
			return nil
		})
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	return out, nil
}

func sweepDirs(c *call, r *wire.SweepRequest) error {
	var failed error
	for _, set := range []struct {
		dir  string
		keep map[string]string
		gone func(name string)
	}{
		{r.Layout.Containers(), r.Containers, func(id string) { endShim(r.Layout.Lock(id)) }},
		{r.Layout.State(), r.Containers, func(string) {}},
		{r.Layout.Sandboxes(), r.Pods, func(string) {}},
	} {
		entries, err := os.ReadDir(set.dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
		for _, e := range entries {
			if _, ok := set.keep[e.Name()]; !ok {
				c.note("removing unknown %s", filepath.Join(set.dir, e.Name()))
				set.gone(e.Name())
				failed = errors.Join(failed, removeTree(filepath.Join(set.dir, e.Name())))
			}
		}
	}
	return failed
}
