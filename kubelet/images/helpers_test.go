package images

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/store/ledger"
	"github.com/nodeactor/nodeactor/test/registry/image"
)

// memoryLedger keeps records in memory and can be made to fail.
type memoryLedger struct {
	mu   sync.Mutex
	kept map[string][]byte
	fail error
}

func (m *memoryLedger) Put(bucket, key string, v any) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	raw, err := json.Marshal(v)
	if m.kept == nil {
		m.kept = map[string][]byte{}
	}
	m.kept[bucket+"\n"+key] = raw
	return err
}

func (m *memoryLedger) Delete(bucket, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.kept, bucket+"\n"+key)
	return m.fail
}

func (m *memoryLedger) Each(bucket string, fn func(string, []byte) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, raw := range m.kept {
		if b, k, _ := strings.Cut(key, "\n"); b == bucket {
			if err := fn(k, raw); err != nil {
				return err
			}
		}
	}
	return nil
}

// openTest opens a store with a real ledger in a fresh directory.
func openTest(t *testing.T, options ...Option) *Store {
	t.Helper()
	needRoot(t)
	dir := t.TempDir()
	l, err := ledger.Open(filepath.Join(dir, "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return openAt(t, filepath.Join(dir, "images"), l, options...)
}

func openAt(t *testing.T, dir string, l Ledger, options ...Option) *Store {
	t.Helper()
	s, err := Open(dir, l, nil, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("unpacking layers needs root: owners, whiteouts and trusted attributes")
	}
}

func mustPull(t *testing.T, s *Store, ref string) Image {
	t.Helper()
	img, err := s.Pull(context.Background(), ref, PullOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// mountOverlay mounts an image's layers read-only the way a container would see them.
func mountOverlay(t *testing.T, layers []string) string {
	t.Helper()
	target, empty := t.TempDir(), t.TempDir()
	lowers := append(append([]string{}, layers...), empty) // an overlay without upper needs two
	err := unix.Mount("overlay", target, "overlay", unix.MS_RDONLY, "lowerdir="+strings.Join(lowers, ":"))
	if err != nil {
		t.Fatalf("cannot mount overlay: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(target, unix.MNT_DETACH) })
	return target
}

// tree lists all files under dir with mode and content or target, one line each, in order.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		b.WriteString(info.Mode().String() + " " + rel + describeFile(path, info) + "\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func describeFile(path string, info fs.FileInfo) string {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, _ := os.Readlink(path)
		return " -> " + target
	case info.Mode().IsRegular():
		content, _ := os.ReadFile(path)
		return " = " + string(content)
	}
	return ""
}

func text(path, content string) image.File { return image.File{Path: path, Content: []byte(content)} }

func spec(layers ...[]image.File) image.Spec {
	return image.Spec{Layers: layers, Entrypoint: []string{"/run"}}
}

func storeIsEmpty(t *testing.T, s *Store) {
	t.Helper()
	for _, dir := range []string{s.tmp(), s.layersDir()} {
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) > 0 {
			t.Errorf("%s holds %v (%v), want nothing", dir, entries, err)
		}
	}
	if list := s.List(); len(list) > 0 {
		t.Errorf("store lists %v, want nothing", list)
	}
}

func joinInts(all []int) string {
	words := make([]string, len(all))
	for i, n := range all {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, " ")
}
