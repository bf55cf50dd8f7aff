package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// GC deletes the layers that no reference names and inUse does not claim, and returns the bytes freed. inUse gets the
// path of a layer directory as it stands in Image.Layers, and must say yes for those of every container that exists or
// is being made. It stops between two layers when ctx ends.
func (s *Store) GC(ctx context.Context, inUse func(layerDir string) bool) (freed int64, err error) {
	for _, name := range s.garbage(inUse) {
		if err := ctx.Err(); err != nil {
			return freed, err
		}
		size, err := s.deleteLayer(name)
		if err != nil {
			return freed, fmt.Errorf("cannot delete layer %s: %w", name, err)
		}
		freed += size
	}
	return freed, nil
}

// garbage lists the layers that may go.
func (s *Store) garbage(inUse func(string) bool) []string {
	var names []string
	s.mu.Lock()
	named := s.named()
	for name := range s.layers {
		if !named[name] && s.pins[name] == 0 {
			names = append(names, name)
		}
	}
	s.mu.Unlock()
	kept := names[:0]
	for _, name := range names {
		if !inUse(s.layerDir(name)) {
			kept = append(kept, name)
		}
	}
	return kept
}

// named gives the layers that references name. The caller holds mu.
func (s *Store) named() map[string]bool {
	all := map[string]bool{}
	for _, r := range s.refs {
		for _, name := range r.Layers {
			all[name] = true
		}
	}
	return all
}

// deleteLayer takes a layer out of its place in one step, if it still may go, and deletes it at leisure.
func (s *Store) deleteLayer(name string) (int64, error) {
	grave, err := s.tempDir("dead")
	if err != nil {
		return 0, err
	}
	size, err := s.bury(name, filepath.Join(grave, "layer"))
	return size, errors.Join(err, os.RemoveAll(grave))
}

func (s *Store) bury(name, grave string) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	meta, ok := s.layers[name]
	if !ok || s.pins[name] > 0 || s.named()[name] {
		return 0, nil
	}
	if err := os.Rename(filepath.Join(s.layersDir(), name), grave); err != nil {
		return 0, err
	}
	delete(s.layers, name)
	delete(s.unsettled, name)
	return meta.Size, nil
}
