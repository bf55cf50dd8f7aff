package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/supervision"
)

func seatAt(t *testing.T, dir string) *Seat {
	t.Helper()
	s := NewSeat(Config{Dir: dir, NodeName: "n", Clock: supervision.RealClock(), Log: slog.New(slog.DiscardHandler)})
	if _, err := s.Fill(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// TestFailedMemberIsReplaced: a member that a full disk has killed, and that cannot be ended, is followed by another one in the same
// process, with everything that was acknowledged.
func TestFailedMemberIsReplaced(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: mounting a small file system needs root")
	}
	mount := t.TempDir()
	if err := unix.Mount("tmpfs", mount, "tmpfs", 0, "size=48m"); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Unmount(mount, unix.MNT_DETACH) }()
	dir := filepath.Join(mount, "store")
	s := seatAt(t, dir)
	acked := fillUntilDead(t, s.member.Load())
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if err := s.Empty(ctx); err != nil {
		t.Logf("the failed member: %v", err)
	}
	if err := unix.Mount("tmpfs", mount, "tmpfs", unix.MS_REMOUNT, "size=400m"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Fill(ctx); err != nil {
		t.Fatal(err)
	}
	page, err := s.Range(ctx, "/big/", "/big0", 0, 0)
	if err != nil || page.Count < int64(acked) {
		t.Fatalf("%d of %d acknowledged writes are there: %v", page.Count, acked, err)
	}
	if res, err := s.Txn(ctx, Write{Key: "/after", Value: []byte("1")}); err != nil || !res.Done {
		t.Fatalf("write after the loss: %+v, %v", res, err)
	}
	t.Logf("%d acknowledged writes survived", acked)
}

// fillUntilDead writes past the seat's own care.
func fillUntilDead(t *testing.T, m *Member) (acked int) {
	t.Helper()
	value := make([]byte, 500_000)
	for ; m.Err() == nil; acked++ {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		_, err := m.Txn(ctx, Write{Key: fmt.Sprintf("/big/%06d", acked), Expect: AnyRevision, Value: value})
		cancel()
		if err != nil {
			break
		}
	}
	select {
	case <-m.Failed():
	case <-time.After(20 * time.Second):
		t.Fatal("the member never failed")
	}
	return acked
}

// TestEmptySeatRefuses: without a member nothing is answered.
func TestEmptySeatRefuses(t *testing.T) {
	s := seatAt(t, t.TempDir())
	ctx := context.Background()
	if err := s.Empty(ctx); err != nil {
		t.Fatal(err)
	}
	_, werr := s.Txn(ctx, Write{Key: "/a"})
	_, rerr := s.Range(ctx, "/", "0", 0, 0)
	_, berr := s.Barrier(ctx)
	for _, err := range []error{werr, rerr, berr, s.Err()} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
	}
	select {
	case <-s.Failed():
	default:
		t.Error("an empty seat has not failed")
	}
}

// TestPace: the log stands still only while a write waits for it.
func TestPace(t *testing.T) {
	var p pace
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	if p.stalled(at(0), 1) || p.stalled(at(60_000), 1) {
		t.Error("an idle log stands still")
	}
	p.begin(at(60_000), 1)
	if p.stalled(at(60_500), 1) || !p.stalled(at(61_000), 1) {
		t.Error("a write that waits a second is a stall, and not before")
	}
	p.end(false)
	if !p.stalled(at(70_000), 1) {
		t.Error("a stall ends because its writer went away")
	}
	if p.stalled(at(70_001), 2) || p.stalled(at(90_000), 2) {
		t.Error("a log that has moved stands still")
	}
}
