package store_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/store/engine"
)

func openStore(t testing.TB, dir string) *store.Store {
	t.Helper()
	s, err := tryOpen(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

func tryOpen(dir string) (*store.Store, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	return store.Open(context.Background(), store.Config{Dir: dir, NodeName: "test", Log: log})
}

func closeStore(t testing.TB, s *store.Store) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}

// put writes a value and waits until it can be read; it returns its revision.
func put(t testing.TB, s *store.Store, key, value string) int64 {
	t.Helper()
	return write(t, s, engine.Write{Key: key, Expect: engine.AnyRevision, Value: []byte(value)})
}

func remove(t testing.TB, s *store.Store, key string) int64 {
	t.Helper()
	return write(t, s, engine.Write{Key: key, Expect: engine.AnyRevision, Delete: true})
}

func write(t testing.TB, s *store.Store, w engine.Write) int64 {
	t.Helper()
	res, err := s.Backend().Engine.Txn(context.Background(), w)
	if err == nil {
		err = s.WaitApplied(context.Background(), res.Revision)
	}
	if err != nil {
		t.Fatal(err)
	}
	return res.Revision
}

func TestReads(t *testing.T) {
	s := openStore(t, t.TempDir())
	put(t, s, "/registry/pods/a/one", "1")
	put(t, s, "/registry/pods/b/two", "2")
	put(t, s, "/registry/services/specs/a/svc", "3")
	put(t, s, "/registry/services/endpoints/a/svc", "4")
	rev := put(t, s, "/registry/example.com/widgets/a/w", "5")
	put(t, s, "/elsewhere", "6")
	for prefix, want := range map[string]string{
		"/registry/pods/":                 "12",
		"/registry/pods/a/":               "1",
		"/registry/services/":             "43",
		"/registry/services/specs/":       "3",
		"/registry/example.com/":          "5",
		"/registry/example.com/widgets/a": "5",
		"/registry/":                      "51243",
		"/registry/none/":                 "",
	} {
		items, at := s.List(prefix)
		var got strings.Builder
		for _, i := range items {
			got.Write(i.Value)
		}
		if got.String() != want || at != rev+1 {
			t.Errorf("%s: got %q at %d, want %q at %d", prefix, got.String(), at, want, rev+1)
		}
	}
	if fmt.Sprint(s.Counts()) != "map[example.com/widgets:1 pods:2 services/endpoints:1 services/specs:1]" {
		t.Errorf("counts %v", s.Counts())
	}
	if i, ok := s.Get("/registry/pods/b/two"); !ok || string(i.Value) != "2" || i.CreateRevision != i.ModRevision {
		t.Errorf("got %v %v", i, ok)
	}
	if err := s.Healthy(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestVersionedDecodesOnce(t *testing.T) {
	s := openStore(t, t.TempDir())
	put(t, s, "/registry/pods/a/one", "1")
	item, _ := s.Get("/registry/pods/a/one")
	calls := 0
	decode := func([]byte) (runtime.Object, error) { calls++; return &corev1.Pod{}, nil }
	first, _ := item.Versioned(decode)
	second, err := item.Versioned(decode)
	if first != second || calls != 1 || err != nil {
		t.Fatalf("%d calls, %v", calls, err)
	}
	bad := errors.New("bad")
	put(t, s, "/registry/pods/a/one", "2")
	item, _ = s.Get("/registry/pods/a/one")
	if _, err := item.Versioned(func([]byte) (runtime.Object, error) { return nil, bad }); !errors.Is(err, bad) {
		t.Fatalf("got %v", err)
	}
}

func TestOpenRefusals(t *testing.T) {
	dir := t.TempDir()
	openStore(t, dir)
	if _, err := tryOpen(dir); !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Fatalf("got %v", err)
	}
	file := filepath.Join(dir, "file")
	_ = os.WriteFile(file, nil, 0o600)
	if _, err := tryOpen(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Fatalf("got %v", err)
	}
}

// next collects events until the wanted number has come.
func next(t *testing.T, sub *store.Subscription, n int) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var b strings.Builder
	for seen := 0; seen < n; {
		events, err := sub.Next(ctx)
		if err != nil {
			t.Fatalf("after %q: %v", b.String(), err)
		}
		for _, e := range events {
			prev := "-"
			if e.Prev != nil {
				prev = string(e.Prev.Value)
			}
			fmt.Fprintf(&b, "%s %s %s>%s;", e.Type, filepath.Base(e.Item.Key), prev, e.Item.Value)
			seen++
		}
	}
	return b.String()
}

func TestSubscriptionsResumeAfterRestart(t *testing.T) {
	dir := t.TempDir()
	s, err := tryOpen(dir)
	if err != nil {
		t.Fatal(err)
	}
	start := put(t, s, "/registry/pods/a/zero", "0")
	put(t, s, "/registry/pods/a/one", "1")
	put(t, s, "/registry/secrets/a/x", "hidden")
	put(t, s, "/registry/pods/a/one", "2")
	remove(t, s, "/registry/pods/a/one")
	put(t, s, "/registry/gone/a/y", "7")
	remove(t, s, "/registry/gone/a/y")
	want := "ADDED one ->1;MODIFIED one 1>2;DELETED one 2>2;ADDED y ->7;DELETED y 7>7;"
	opts := store.SubscribeOptions{Prefixes: []string{"/registry/pods/", "/registry/gone/"}, After: start}
	sub := s.Subscribe(opts)
	if got := next(t, sub, 5); got != want {
		t.Fatalf("live: got %s", got)
	}
	sub.Close()
	closeStore(t, s)
	if _, err := s.Subscribe(opts).Next(context.Background()); !errors.Is(err, store.ErrClosed) {
		t.Fatalf("closed: got %v", err)
	}

	s = openStore(t, dir)
	sub = s.Subscribe(opts)
	defer sub.Close()
	put(t, s, "/registry/pods/a/late", "3")
	if got := next(t, sub, 6); got != want+"ADDED late ->3;" {
		t.Fatalf("resumed: got %s", got)
	}
	if err := s.CompactTo(context.Background(), s.Revision()); err != nil {
		t.Fatal(err)
	}
	old := s.Subscribe(opts)
	defer old.Close()
	if _, err := old.Next(context.Background()); !errors.Is(err, store.ErrCompacted) {
		t.Fatalf("compacted: got %v", err)
	}
	put(t, s, "/registry/pods/a/later", "4")
	if got := next(t, sub, 1); got != "ADDED later ->4;" {
		t.Fatalf("live through compaction: got %s", got)
	}
}

func TestMaintainWritesOnlyAfterWrites(t *testing.T) {
	ctx := context.Background()
	s := openStore(t, t.TempDir())
	for i := range 1100 {
		put(t, s, "/registry/pods/a/one", fmt.Sprint(i))
	}
	for range 2 {
		if err := s.Maintain(ctx); err != nil {
			t.Fatal(err)
		}
	}
	first := s.CompactRevision()
	if first == 0 || first > s.Revision()-100 {
		t.Fatalf("compacted to %d of %d", first, s.Revision())
	}
	if err := s.Maintain(ctx); err != nil || s.CompactRevision() != first {
		t.Fatalf("moved to %d, %v", s.CompactRevision(), err)
	}
	var buf bytes.Buffer
	if err := s.Snapshot(ctx, &buf); err != nil || buf.Len() == 0 {
		t.Fatalf("%d bytes, %v", buf.Len(), err)
	}
}

// fingerprint is a digest of every file below dir.
func fingerprint(t *testing.T, dir string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		fi, _ := d.Info()
		sums[path] = fmt.Sprintf("%x %v", sha256.Sum256(raw), fi.ModTime())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

func TestQuietStoreWritesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openStore(t, dir)
	put(t, s, "/registry/pods/a/one", "1")
	time.Sleep(6 * time.Second) // the engine settles its cluster version once, after the first boot
	before, rev := fingerprint(t, dir), s.Revision()
	for range 3 {
		time.Sleep(4 * time.Second)
		if err := s.Maintain(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := s.Healthy(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	for path, sum := range fingerprint(t, dir) {
		if before[path] != sum {
			t.Errorf("%s was written: %s, before %s", path, sum, before[path])
		}
	}
	if s.Revision() != rev {
		t.Errorf("revision moved from %d to %d", rev, s.Revision())
	}
}
