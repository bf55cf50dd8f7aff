package engine

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

func openAt(t testing.TB, dir string) *Member {
	t.Helper()
	m, err := Open(context.Background(), Config{Dir: dir, NodeName: "n", Clock: supervision.RealClock(), Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	return m
}

func put(t testing.TB, m *Member, key, value string, expect int64) Result {
	t.Helper()
	res, err := m.Txn(context.Background(), Write{Key: key, Value: []byte(value), Expect: expect})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestBootIsQuick(t *testing.T) {
	dir := t.TempDir()
	for _, what := range []string{"first", "second"} {
		start := time.Now()
		m, err := Open(context.Background(), Config{Dir: dir, NodeName: "n", Clock: supervision.RealClock(), Log: slog.Default()})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s boot took %v", what, time.Since(start))
		put(t, m, "/a", "1", AnyRevision)
		start = time.Now()
		if err := m.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		t.Logf("close took %v", time.Since(start))
	}
}

func TestConditionalWrites(t *testing.T) {
	ctx := context.Background()
	m := openAt(t, t.TempDir())
	first := put(t, m, "/a", "1", 0)
	if !first.Done {
		t.Fatal("create refused")
	}
	again := put(t, m, "/a", "2", 0)
	if again.Done || again.Current == nil || string(again.Current.Value) != "1" || again.Current.ModRevision != first.Revision {
		t.Fatalf("got %+v", again)
	}
	guarded, err := m.Txn(ctx, Write{Key: "/b", Expect: 0, Guards: []Guard{{"/a", first.Revision + 1}}})
	if err != nil || guarded.Done || guarded.Current != nil {
		t.Fatalf("got %+v, %v", guarded, err)
	}
	gone, err := m.Txn(ctx, Write{Key: "/a", Expect: first.Revision, Delete: true})
	if err != nil || !gone.Done || gone.Revision != first.Revision+1 {
		t.Fatalf("got %+v, %v", gone, err)
	}
}

func TestHistoryHasPreviousValues(t *testing.T) {
	ctx := context.Background()
	m := openAt(t, t.TempDir())
	before := m.Revision()
	r1 := put(t, m, "/x/a", "1", 0)
	r2 := put(t, m, "/x/a", "2", r1.Revision)
	put(t, m, "/y", "other", 0)
	if _, err := m.Txn(ctx, Write{Key: "/x/a", Expect: r2.Revision, Delete: true}); err != nil {
		t.Fatal(err)
	}
	all, reached, err := m.History(ctx, "/x/", "/x0", before, m.Revision(), 100)
	if err != nil || reached != m.Revision() || len(all) != 3 {
		t.Fatalf("got %v up to %d, %v", all, reached, err)
	}
	if all[0].Prev != nil || string(all[1].Prev.Value) != "1" || !all[2].Delete || string(all[2].Prev.Value) != "2" {
		t.Fatalf("got %+v", all)
	}
	tail, _, err := m.History(ctx, "/x/", "/x0", r2.Revision, m.Revision(), 100)
	if err != nil || len(tail) != 1 || string(tail[0].Prev.Value) != "2" {
		t.Fatalf("got %+v, %v", tail, err)
	}
	if err := m.Compact(ctx, m.Revision()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := m.History(ctx, "/x/", "/x0", before, m.Revision(), 100); !errors.Is(err, ErrCompacted) {
		t.Fatalf("got %v", err)
	}
}

func TestOpenRefusals(t *testing.T) {
	dir := t.TempDir()
	m := openAt(t, dir)
	try := func(dir string) error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		other, err := Open(ctx, Config{Dir: dir, NodeName: "n", Clock: supervision.RealClock(), Log: slog.Default()})
		if err == nil {
			_ = other.Close(ctx)
			t.Errorf("%s was accepted", dir)
		}
		t.Logf("refused: %v", err)
		return err
	}
	if err := try(dir); !errors.Is(err, ErrLocked) {
		t.Fatalf("got %v", err)
	}
	put(t, m, "/a", string(make([]byte, 100000)), 0)
	if err := m.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "plain")
	_ = os.WriteFile(file, []byte("x"), 0o600)
	try(file)
	wals, _ := filepath.Glob(filepath.Join(dir, "member", "wal", "0*.wal"))
	spoil(t, wals[0], func() { _ = os.WriteFile(wals[0], []byte("garbage garbage garbage garbage"), 0o600); try(dir) })
}

func spoil(t *testing.T, path string, f func()) {
	t.Helper()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f()
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
}
