package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/store/engine"
)

// smallDisk is a directory on a file system of its own with so many MB.
func smallDisk(t *testing.T, mb int) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("skipped: mounting a small file system needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", mb)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// tryPut writes one value of so many bytes, with a limit.
func tryPut(s *store.Store, size int) (engine.Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return s.Backend().Engine.Txn(ctx, engine.Write{Key: "/registry/pods/a/big", Expect: engine.AnyRevision, Value: []byte(strings.Repeat("x", size))})
}

// TestFullDiskRefusesWrites: before the disk is full writes are refused with the reason; reads and subscriptions go on, and writes do as
// soon as there is room.
func TestFullDiskRefusesWrites(t *testing.T) {
	dir := smallDisk(t, 80)
	s := openStore(t, dir+"/store")
	sub := s.Subscribe(store.SubscribeOptions{})
	if err := os.WriteFile(dir+"/ballast", make([]byte, 20<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	for deadline := time.Now().Add(60 * time.Second); err == nil && time.Now().Before(deadline); {
		_, err = tryPut(s, 500_000)
	}
	if !errors.Is(err, engine.ErrNoSpace) || !strings.Contains(err.Error(), dir) {
		t.Fatalf("the write was not refused for want of space: %v", err)
	}
	t.Logf("refused: %v", err)
	time.Sleep(2 * time.Second) // the database writes behind the log, and must have had room
	if err := s.Healthy(context.Background()); err != nil {
		t.Fatalf("the engine did not live: %v", err)
	}
	if _, ok := s.Get("/registry/pods/a/big"); !ok {
		t.Error("what was written cannot be read")
	}
	if err := os.Remove(dir + "/ballast"); err != nil {
		t.Fatal(err)
	}
	freed := time.Now()
	for _, err = tryPut(s, 10); err != nil; _, err = tryPut(s, 10) {
		if time.Since(freed) > 2*time.Second {
			t.Fatalf("writes are refused %s after there was room: %v", time.Since(freed), err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err := sub.Next(ctx); err != nil {
		t.Errorf("the subscription has ended: %v", err)
	}
}

// TestReopenKeepsReaders: a store whose engine was lost goes on reading from memory, and its subscriptions do not notice the next engine.
func TestReopenKeepsReaders(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	s := openStore(t, t.TempDir())
	put(t, s, "/registry/pods/a/one", "1")
	sub := s.Subscribe(store.SubscribeOptions{Prefixes: []string{"/registry/pods/"}, After: s.Revision()})
	for life := range 3 {
		if err := s.Rest(ctx); err != nil {
			t.Fatal(err)
		}
		if item, ok := s.Get("/registry/pods/a/one"); !ok || string(item.Value) != fmt.Sprint(life+1) {
			t.Fatalf("life %d: read %v, %v", life, item, ok)
		}
		if _, err := tryPut(s, 1); !errors.Is(err, engine.ErrClosed) {
			t.Fatalf("a write without an engine: %v", err)
		}
		if err := s.Reopen(ctx); err != nil {
			t.Fatal(err)
		}
		rev := put(t, s, "/registry/pods/a/one", fmt.Sprint(life+2))
		events, err := sub.Next(ctx)
		if err != nil || len(events) != 1 || events[0].Revision != rev {
			t.Fatalf("life %d: events %v, %v", life, events, err)
		}
	}
}

// freeBytes is what may still be written to the disk of dir.
func freeBytes(t *testing.T, dir string) int64 {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	return int64(st.Bfree) * st.Bsize
}
