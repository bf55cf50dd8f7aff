package storage_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nodeactor/nodeactor/actors/operator/storage"
	"github.com/nodeactor/nodeactor/actors/operator/storage/storagetest"
	"github.com/nodeactor/nodeactor/cluster/lease"
)

// TestF101_BoltIsAStore: the store in a file passes the suite.
func TestF101_BoltIsAStore(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Store { return openBolt(t, filepath.Join(t.TempDir(), "store.db")) })
}

func openBolt(t *testing.T, path string) *storage.BoltStore {
	t.Helper()
	s, err := storage.OpenBolt(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func thing(name string) storage.ID { return storage.ID{Kind: "Thing", Name: name} }

// TestF101_BoltSurvivesReopen: what was answered is there after the file was opened again, and revisions and epochs go on. A watch may
// begin where one before has ended.
func TestF101_BoltSurvivesReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := openBolt(t, path)
	first, err := s.Write(t.Context(), storage.Write{ID: thing("a"), Value: []byte("1")})
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.Write(t.Context(), storage.Write{ID: thing("b"), Value: []byte("2")})
	if err != nil {
		t.Fatal(err)
	}
	held := lease.Record{}.Taken(lease.SessionID{Node: "n", Boot: "1"})
	if done, err := s.Append(t.Context(), []lease.Write{{Manifest: thing("a").Key(), Record: held}}); err != nil || done[0].Err != nil {
		t.Fatal(done, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = openBolt(t, path)
	a, err := s.GetObject(t.Context(), thing("a"))
	if err != nil || string(a.Value) != "1" || a.Revision != first {
		t.Errorf("read %+v, %v", a, err)
	}
	got, err := s.Lease(t.Context(), thing("a").Key())
	if err != nil || got.Record != held {
		t.Errorf("read %+v, %v", got, err)
	}
	if m, _ := s.WatchSessions(func() {}).Take(); len(m.Live) != 1 || m.Live[0].ID != held.Holder || !m.Grace {
		t.Errorf("the holder is not given time: %+v", m)
	}
	feed, err := s.Watch(first, storage.Filter{Objects: true}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	third, err := s.Write(t.Context(), storage.Write{ID: thing("c")})
	if err != nil || third <= second {
		t.Errorf("revision %d after %d, %v", third, second, err)
	}
	if changes, err := feed.Take(); err != nil || len(changes) != 2 || changes[0].Object.Name != "b" || changes[1].Object.Name != "c" {
		t.Errorf("told %+v, %v", changes, err)
	}
}

// TestF101_BoltRefusals: a file that cannot be the store's is refused by name, with the way out.
func TestF101_BoltRefusals(t *testing.T) {
	dir := t.TempDir()
	held := filepath.Join(dir, "held.db")
	openBolt(t, held)
	if _, err := storage.OpenBolt(held); !errors.Is(err, storage.ErrLocked) || !strings.Contains(err.Error(), held) {
		t.Errorf("a second process: %v", err)
	}
	cut := filepath.Join(dir, "cut.db")
	s := openBolt(t, cut)
	for _, name := range []string{"a", "b", "c"} {
		if _, err := s.Write(t.Context(), storage.Write{ID: thing(name), Value: make([]byte, 50_000)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.Close(), os.Truncate(cut, 40_000)); err != nil {
		t.Fatal(err)
	}
	garbage := filepath.Join(dir, "garbage.db")
	if err := os.WriteFile(garbage, []byte(strings.Repeat("garbage", 10_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{cut, garbage} {
		_, err := storage.OpenBolt(path)
		if !errors.Is(err, storage.ErrCorrupt) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "move it away") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
