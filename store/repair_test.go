package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/store/engine"
	"github.com/nodeactor/nodeactor/store/snapshot"
)

// TestP21_HowANodeComesUpWithADamagedStore is the whole table.
func TestP21_HowANodeComesUpWithADamagedStore(t *testing.T) {
	for _, c := range []struct {
		snapshot, accepted bool
		want               store.Verdict
	}{
		{true, false, store.ReadOnly},
		{false, false, store.Unreadable},
		{true, true, store.FallBack},
		{false, true, store.Refuse},
	} {
		if got := store.Choose(c.snapshot, c.accepted); got != c.want {
			t.Errorf("snapshot %t, loss accepted %t: %d, want %d", c.snapshot, c.accepted, got, c.want)
		}
	}
}

// broken is a store with a snapshot of three objects, two more written after it, and damage in the middle of its log.
type broken struct {
	cfg       store.Config
	snapshots string
	saved     snapshot.Info
	newest    int64
	logFile   string
	opened    error
}

func breakStore(t *testing.T) broken {
	t.Helper()
	base := t.TempDir()
	b := broken{cfg: store.Config{Dir: filepath.Join(base, "store"), NodeName: "n", Log: slog.New(slog.DiscardHandler)}, snapshots: filepath.Join(base, "snapshots")}
	s, err := store.Open(t.Context(), b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		put(t, s, fmt.Sprintf("/registry/pods/a/%d", i), "saved")
	}
	if b.saved, err = snapshot.Save(t.Context(), b.snapshots, snapshot.Periodic, s.Snapshot, snapshot.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		b.newest = put(t, s, fmt.Sprintf("/registry/pods/b/%d", i), "later")
	}
	closeStore(t, s)
	logs, _ := filepath.Glob(filepath.Join(b.cfg.Dir, "member/wal/*.wal"))
	b.logFile = logs[0]
	written, err := os.ReadFile(b.logFile)
	if err != nil {
		t.Fatal(err)
	}
	spoilAt(t, b.logFile, int64(bytes.Index(written, []byte("saved")))) // in a record that is followed by others
	b.opened = b.mustFail(t)
	return b
}

func spoilAt(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("noise"), at); err != nil {
		t.Fatal(err)
	}
}

func (b broken) mustFail(t *testing.T) error {
	t.Helper()
	s, err := store.Open(t.Context(), b.cfg)
	if err == nil {
		closeStore(t, s)
		t.Fatal("the damaged store was opened")
	}
	if !errors.Is(err, store.ErrDamaged) {
		t.Fatal(err)
	}
	return err
}

// spoilDatabase damages the database too, so that only the snapshot is left.
func (b *broken) spoilDatabase(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(engine.DatabaseFile(b.cfg.Dir), []byte(strings.Repeat("noise", 5000)), 0o600); err != nil {
		t.Fatal(err)
	}
	b.opened = b.mustFail(t)
}

// files are the paths and contents below a directory.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestP21_DatabaseOfADamagedLogIsSaved: what the database has is newer than the snapshot, and is what is fallen back to; it is saved once.
func TestP21_DatabaseOfADamagedLogIsSaved(t *testing.T) {
	b := breakStore(t)
	before := files(t, b.cfg.Dir)
	for range 2 {
		d := store.Assess(t.Context(), b.cfg, b.snapshots, b.opened)
		if d.Good == nil || d.Good.Reason != "salvaged" || d.Good.Revision != b.newest || d.Known != b.newest {
			t.Fatalf("found %+v, newest was %d", d, b.newest)
		}
		time.Sleep(1100 * time.Millisecond) // names have whole seconds
	}
	if all, _ := os.ReadDir(b.snapshots); len(all) != 2 {
		t.Errorf("there are %d snapshots", len(all))
	}
	for path, content := range files(t, b.cfg.Dir) {
		if before[path] != content {
			t.Errorf("%s was changed", path)
		}
	}
}

// TestP21_ReadOnlyStore: reads are answered with the snapshot, writes are refused with the reason, nothing is touched.
func TestP21_ReadOnlyStore(t *testing.T) {
	b := breakStore(t)
	b.spoilDatabase(t)
	d := store.Assess(t.Context(), b.cfg, b.snapshots, b.opened)
	if d.Good == nil || d.Good.Path != b.saved.Path || d.Known != b.newest {
		t.Fatalf("found %+v", d)
	}
	before := files(t, filepath.Dir(b.cfg.Dir))
	scratch := filepath.Join(t.TempDir(), "scratch")
	s, err := store.OpenReadOnly(t.Context(), b.cfg, *d.Good, scratch, d.Err)
	if err != nil {
		t.Fatal(err)
	}
	items, rev := s.List("/registry/pods/")
	if len(items) != 3 || rev != b.saved.Revision {
		t.Errorf("%d items at revision %d", len(items), rev)
	}
	if err := s.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
	_, err = s.Backend().Engine.Txn(t.Context(), engine.Write{Key: "/registry/pods/a/new", Value: []byte("x")})
	if !errors.Is(err, store.ErrReadOnly) || !strings.Contains(err.Error(), engine.DatabaseFile(b.cfg.Dir)) && !strings.Contains(err.Error(), b.logFile) {
		t.Errorf("a write: %v", err)
	}
	if _, err := s.Lease(t.Context(), 60); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("a lease: %v", err)
	}
	if _, _, err := s.Backend().Engine.History(t.Context(), "/", "0", 1, rev, 10); !errors.Is(err, engine.ErrCompacted) {
		t.Errorf("history: %v", err)
	}
	if page, err := s.Backend().Engine.Range(t.Context(), "/registry/pods/a/0", "/registry/pods/a/1", rev-1, 0); err != nil || page.Count != 1 {
		t.Errorf("a read of an older revision: %+v, %v", page, err)
	}
	if err := s.Snapshot(t.Context(), io.Discard); err != nil {
		t.Errorf("a snapshot: %v", err)
	}
	sub := s.Subscribe(store.SubscribeOptions{After: rev})
	limited, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if events, err := sub.Next(limited); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a subscription: %v, %v", events, err)
	}
	sub.Close()
	closeStore(t, s)
	if _, err := os.Stat(scratch); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the copy is left behind: %v", err)
	}
	for path, content := range files(t, filepath.Dir(b.cfg.Dir)) {
		if before[path] != content {
			t.Errorf("%s was changed", path)
		}
	}
}

// TestP21_FallBackGoesOnAboveEveryRevision: the store that is made from the snapshot begins above whatever a client has seen, says what is
// lost, and leaves the damaged files where they can be found.
func TestP21_FallBackGoesOnAboveEveryRevision(t *testing.T) {
	b := breakStore(t)
	b.spoilDatabase(t)
	d := store.Assess(t.Context(), b.cfg, b.snapshots, b.opened)
	for _, part := range []string{fmt.Sprint(b.saved.Revision), fmt.Sprint(b.newest), b.saved.Time.Format(time.RFC3339)} {
		if !strings.Contains(d.Lost(), part) {
			t.Errorf("%q does not say %s", d.Lost(), part)
		}
	}
	restored, err := d.Restore(t.Context(), b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(restored.Aside, "member/wal", filepath.Base(b.logFile))); err != nil {
		t.Errorf("the damaged files are not kept: %v", err)
	}
	s, err := store.Open(t.Context(), b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	items, rev := s.List("/registry/pods/")
	if len(items) != 3 || rev < b.newest+1_000_000 {
		t.Errorf("%d items at revision %d, acknowledged was %d", len(items), rev, b.newest)
	}
	if next := put(t, s, "/registry/pods/a/new", "x"); next <= rev {
		t.Errorf("the next write has revision %d", next)
	}
	sub := s.Subscribe(store.SubscribeOptions{After: b.newest})
	if _, err := sub.Next(t.Context()); !errors.Is(err, store.ErrCompacted) {
		t.Errorf("a watch from before the damage: %v", err)
	}
	sub.Close()
	closeStore(t, s)
}

// TestP21_NoSnapshotAtAll: there is nothing to answer with, and the reason says so.
func TestP21_NoSnapshotAtAll(t *testing.T) {
	b := breakStore(t)
	b.spoilDatabase(t)
	if err := os.RemoveAll(b.snapshots); err != nil {
		t.Fatal(err)
	}
	d := store.Assess(t.Context(), b.cfg, b.snapshots, b.opened)
	if d.Good != nil || !errors.Is(d.None, snapshot.ErrNone) || d.Known != b.newest {
		t.Errorf("found %+v", d)
	}
}

// TestP21_DamagedSnapshotIsNotServed: a copy that does not open is an error, and leaves nothing behind.
func TestP21_DamagedSnapshotIsNotServed(t *testing.T) {
	b := breakStore(t)
	for page := range 2 {
		spoilAt(t, b.saved.Path, int64(page*os.Getpagesize()+16))
	}
	scratch := filepath.Join(t.TempDir(), "scratch")
	s, err := store.OpenReadOnly(t.Context(), b.cfg, b.saved, scratch, b.opened)
	if err == nil {
		closeStore(t, s)
		t.Fatal("it was opened")
	}
	if !errors.Is(err, store.ErrDamaged) {
		t.Error(err)
	}
	if _, err := os.Stat(scratch); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the copy is left behind: %v", err)
	}
}
