package store_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/store/engine"
)

// TestFullDiskIsAnError: when the log cannot be written the store fails with a reason, and the process lives.
func TestFullDiskIsAnError(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=40m"); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }()
	s, err := tryOpen(dir)
	if err != nil {
		t.Fatal(err)
	}
	sub := s.Subscribe(store.SubscribeOptions{})
	value := []byte(strings.Repeat("x", 500_000))
	deadline := time.Now().Add(60 * time.Second)
	for err == nil && time.Now().Before(deadline) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		_, err = s.Backend().Engine.Txn(ctx, engine.Write{Key: "/registry/pods/a/big", Expect: engine.AnyRevision, Value: value})
		cancel()
	}
	t.Logf("write failed: %v", err)
	if err == nil {
		t.Fatal("the disk never filled")
	}
	select {
	case <-s.Failed():
	case <-time.After(10 * time.Second):
		t.Fatal("nobody was told")
	}
	t.Logf("store failed: %v", s.Err())
	if err := s.Healthy(context.Background()); err == nil {
		t.Error("healthy")
	}
	for err = nil; err == nil; {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		_, err = sub.Next(ctx)
		cancel()
	}
	if !errors.Is(err, store.ErrClosed) {
		t.Errorf("subscriber: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	t.Logf("close: %v", s.Close(ctx))
}
