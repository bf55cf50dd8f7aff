package ledger

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

type record struct{ A, B string }

func open(t *testing.T, path string) *Ledger {
	t.Helper()
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestPutSurvivesReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "ledger.db")
	l := open(t, path)
	if err := l.Put("pods", "one", record{"a", "b"}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var got record
	ok, err := open(t, path).Get("pods", "one", &got)
	if err != nil || !ok || got != (record{"a", "b"}) {
		t.Fatalf("got %v %v %v", got, ok, err)
	}
}

func TestGetAndDeleteOfAbsent(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "l"))
	if ok, err := l.Get("none", "x", &record{}); ok || err != nil {
		t.Fatalf("got %v %v", ok, err)
	}
	if err := l.Delete("none", "x"); err != nil {
		t.Fatal(err)
	}
}

func TestEachInOrderAndMayDelete(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "l"))
	for _, k := range []string{"b", "a", "c"} {
		if err := l.Put("x", k, k); err != nil {
			t.Fatal(err)
		}
	}
	var seen string
	err := l.Each("x", func(k string, raw []byte) error { seen += k; return l.Delete("x", k) })
	if err != nil || seen != "abc" {
		t.Fatalf("seen %q, %v", seen, err)
	}
	stop := errors.New("stop")
	_ = l.Put("x", "d", 1)
	if err := l.Each("x", func(string, []byte) error { return stop }); !errors.Is(err, stop) {
		t.Fatalf("got %v", err)
	}
}

func TestOpenRefusals(t *testing.T) {
	dir := t.TempDir()
	held := filepath.Join(dir, "held")
	open(t, held)
	if _, err := Open(held); !errors.Is(err, ErrLocked) {
		t.Fatalf("second open: %v", err)
	}
	bad := filepath.Join(dir, "bad")
	if err := os.WriteFile(bad, make([]byte, 20000), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(bad); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("garbage: %v", err)
	}
	if _, err := Open(filepath.Join(bad, "below")); err == nil {
		t.Fatal("a file as directory was accepted")
	}
	if err := open(t, filepath.Join(dir, "l")).Put("", "k", 1); !errors.Is(err, ErrName) {
		t.Fatalf("empty bucket: %v", err)
	}
}

func TestTruncatedFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "l")
	l := open(t, path)
	for i := range 50 {
		if err := l.Put("x", string(rune('a'+i)), make([]byte, 4000)); err != nil {
			t.Fatal(err)
		}
	}
	_ = l.Close()
	if err := os.Truncate(path, 8192); err != nil {
		t.Fatal(err)
	}
	if l, err := Open(path); err == nil {
		_ = l.Close()
		t.Fatal("a truncated ledger was accepted")
	} else if !errors.Is(err, ErrCorrupt) {
		t.Fatalf("got %v", err)
	}
}
