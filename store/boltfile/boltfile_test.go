package boltfile

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func open(t *testing.T, path string) *File {
	t.Helper()
	f, err := Open(path, "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestValuesSurviveReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	f := open(t, path)
	put := func(key string) func(Tx) error {
		return func(tx Tx) error { return tx.Put("a", key, []byte("value of "+key)) }
	}
	for _, key := range []string{"x/2", "x/1", "y", "w", "x/3"} {
		if err := f.Update(put(key)); err != nil {
			t.Fatal(err)
		}
	}
	stop := errors.New("stop")
	err := f.Update(func(tx Tx) error { _ = tx.Remove("a", "y"); return stop })
	if !errors.Is(err, stop) {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.View(func(Tx) error { return nil }); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed file: %v", err)
	}
	_ = open(t, path).View(func(tx Tx) error {
		if string(tx.Get("a", "y")) != "value of y" || tx.Get("b", "y") != nil {
			t.Errorf("read %q and %q", tx.Get("a", "y"), tx.Get("b", "y"))
		}
		var seen []string
		see := func(key string, _ []byte) bool { seen = append(seen, key); return len(seen) != 4 }
		tx.Each("a", "x/", "", see)
		tx.Each("a", "x/", "x/1", see) // ends at the fourth
		tx.Each("a", "", "x/3", see)
		if want := []string{"x/1", "x/2", "x/3", "x/2", "y"}; !slices.Equal(seen, want) {
			t.Errorf("saw %q, want %q", seen, want)
		}
		return nil
	})
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "held")
	open(t, path)
	if _, err := Open(path); !errors.Is(err, ErrLocked) {
		t.Errorf("a second open: %v", err)
	}
	bad := filepath.Join(dir, "bad")
	if err := os.WriteFile(bad, make([]byte, 20000), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(bad); !errors.Is(err, ErrCorrupt) {
		t.Errorf("garbage: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "no", "such")); err == nil {
		t.Error("a directory was made")
	}
}
