package snapshot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	etcdutl "go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"

	"github.com/nodeactor/nodeactor/store/engine"
	"github.com/nodeactor/nodeactor/supervision"
)

const testNode = "n1"

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// openEngine opens a real engine on dir until the test's end or the returned function.
func openEngine(t *testing.T, dir string) (*engine.Member, func()) {
	t.Helper()
	m, err := engine.Open(t.Context(), engine.Config{Dir: dir, NodeName: testNode, Clock: supervision.RealClock(), Log: discard()})
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	end := func() {
		if closed {
			return
		}
		closed = true
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(end)
	return m, end
}

// put writes one key and returns its revision.
func put(t *testing.T, e engine.Engine, key, value string) int64 {
	t.Helper()
	r, err := e.Txn(t.Context(), engine.Write{Key: key, Expect: engine.AnyRevision, Value: []byte(value)})
	if err != nil || !r.Done {
		t.Fatalf("put %s: %+v, %v", key, r, err)
	}
	return r.Revision
}

// read is all keys below /registry/ with their values.
func read(t *testing.T, e engine.Engine) map[string]string {
	t.Helper()
	page, err := e.Range(t.Context(), "/registry/", "/registry0", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, kv := range page.KVs {
		all[kv.Key] = string(kv.Value)
	}
	return all
}

// saved makes a store with three keys and a snapshot of it, and returns the snapshot and the store's directory.
func saved(t *testing.T) (Info, string) {
	t.Helper()
	dir := t.TempDir()
	m, end := openEngine(t, filepath.Join(dir, "store"))
	for i := range 3 {
		put(t, m, fmt.Sprintf("/registry/configmaps/default/c%d", i), "v")
	}
	info, err := Save(t.Context(), filepath.Join(dir, Dir), Manual, m.Snapshot, SaveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if info.Revision != m.Revision() {
		t.Errorf("the snapshot is of revision %d, the store's is %d", info.Revision, m.Revision())
	}
	end()
	return info, filepath.Join(dir, "store")
}

// damage changes one byte in the middle of a file.
func damage(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 0x40
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSaveVerifyRestore(t *testing.T) {
	info, dir := saved(t)
	if got, err := Verify(t.Context(), info.Path); err != nil || got != info {
		t.Fatalf("verified %+v, %v; saved %+v", got, err, info)
	}
	m, end := openEngine(t, dir)
	put(t, m, "/registry/configmaps/default/c0", "later")
	last := put(t, m, "/registry/configmaps/default/new", "later")
	if _, err := Restore(t.Context(), info.Path, dir, Options{NodeName: testNode, Aside: true, Log: discard()}); !errors.Is(err, ErrLocked) {
		t.Fatalf("restored under an open store: %v", err)
	}
	end()
	if _, err := Restore(t.Context(), info.Path, dir, Options{NodeName: testNode, Log: discard()}); !errors.Is(err, ErrNotEmpty) {
		t.Fatalf("restored over a store: %v", err)
	}
	r, err := Restore(t.Context(), info.Path, dir, Options{NodeName: testNode, Aside: true, Log: discard()})
	if err != nil {
		t.Fatal(err)
	}
	if r.Revision <= last || r.Snapshot != info {
		t.Errorf("restored %+v, the store's last revision was %d", r, last)
	}
	m, end = openEngine(t, dir)
	if got := read(t, m); len(got) != 3 || got["/registry/configmaps/default/c0"] != "v" {
		t.Errorf("restored %v", got)
	}
	if m.Revision() < r.Revision {
		t.Errorf("revision %d, said %d", m.Revision(), r.Revision)
	}
	if rev := put(t, m, "/registry/configmaps/default/c0", "after"); rev <= r.Revision {
		t.Errorf("wrote revision %d, the store began with %d", rev, r.Revision)
	}
	if _, _, err := m.History(t.Context(), engine.First, engine.Last, last, m.Revision(), 10); !errors.Is(err, engine.ErrCompacted) {
		t.Errorf("history from before the restore: %v", err)
	}
	end()
	old, end := openEngine(t, r.Aside)
	defer end()
	if got := read(t, old); len(got) != 4 || got["/registry/configmaps/default/c0"] != "later" {
		t.Errorf("the store that was moved aside holds %v", got)
	}
}

// TestEtcdsOwnToolReadsIt holds that what etcdutl snapshot status does with a file finds nothing wrong with ours, and the same revision.
func TestEtcdsOwnToolReadsIt(t *testing.T) {
	info, _ := saved(t)
	status, err := etcdutl.NewV3(zap.NewNop()).Status(info.Path)
	if err != nil || status.Revision != info.Revision || status.TotalKey < 3 {
		t.Errorf("it says %+v, %v; we say %+v", status, err, info)
	}
}

// TestWatchesFromBeforeARestoreListAnew holds what the readers of a restored store see: nothing of its history, and revisions that go on.
func TestWatchesFromBeforeARestoreListAnew(t *testing.T) {
	info, dir := saved(t)
	m, end := openEngine(t, dir)
	seen := put(t, m, "/registry/configmaps/default/c0", "seen by a watch")
	end()
	r, err := Restore(t.Context(), info.Path, dir, Options{NodeName: testNode, Aside: true, Log: discard()})
	if err != nil {
		t.Fatal(err)
	}
	m, _ = openEngine(t, dir)
	for _, after := range []int64{1, info.Revision, seen, seen + 1000} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		err := m.Watch(ctx, engine.First, engine.Last, after, func(engine.Batch) error { return errSource })
		cancel()
		if !errors.Is(err, engine.ErrCompacted) {
			t.Errorf("a watch after revision %d: %v", after, err)
		}
	}
	if _, err := m.Range(t.Context(), "/registry/", "/registry0", seen, 0); !errors.Is(err, engine.ErrCompacted) {
		t.Errorf("a list at revision %d: %v", seen, err)
	}
	page, err := m.Range(t.Context(), "/registry/", "/registry0", 0, 0)
	if err != nil || page.Revision != r.Revision || len(page.KVs) != 3 {
		t.Fatalf("a list now: %+v, %v", page, err)
	}
	next := put(t, m, "/registry/configmaps/default/c1", "after")
	var got []engine.Change
	err = m.Watch(t.Context(), engine.First, engine.Last, page.Revision, func(b engine.Batch) error {
		if got = append(got, b.Changes...); len(got) > 0 {
			return errSource
		}
		return nil
	})
	if !errors.Is(err, errSource) || len(got) != 1 || got[0].KV.ModRevision != next || got[0].KV.Version != 2 {
		t.Errorf("a watch from the list on: %+v, %v", got, err)
	}
}

// TestEmptyStores holds that a store in which there is nothing, because nothing ever was or because all is deleted and forgotten, keeps its
// revision in a snapshot, and is restored above it.
func TestEmptyStores(t *testing.T) {
	for name, fill := range map[string]func(*testing.T, *engine.Member){
		"nothing ever was": func(*testing.T, *engine.Member) {},
		"all is forgotten": func(t *testing.T, m *engine.Member) {
			for i := range 20 {
				put(t, m, "/registry/x", fmt.Sprint(i))
			}
			r, err := m.Txn(t.Context(), engine.Write{Key: "/registry/x", Expect: engine.AnyRevision, Delete: true})
			if err == nil {
				err = m.Compact(t.Context(), r.Revision)
			}
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(200 * time.Millisecond) // the forgetting itself is done in the background
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			m, end := openEngine(t, filepath.Join(dir, "store"))
			fill(t, m)
			want := m.Revision()
			info, err := Save(t.Context(), filepath.Join(dir, Dir), Manual, m.Snapshot, SaveOptions{})
			if err != nil || info.Revision != want {
				t.Fatalf("saved %+v, %v; the store is at %d", info, err, want)
			}
			end()
			r, err := Restore(t.Context(), info.Path, filepath.Join(dir, "store"), Options{NodeName: testNode, Aside: true, Log: discard()})
			if err != nil {
				t.Fatal(err)
			}
			m, _ = openEngine(t, filepath.Join(dir, "store"))
			if m.Revision() != r.Revision || r.Revision <= want {
				t.Errorf("the store begins at %d, restore said %d, it was at %d", m.Revision(), r.Revision, want)
			}
			if got := read(t, m); len(got) > 0 {
				t.Errorf("restored %v", got)
			}
		})
	}
}
