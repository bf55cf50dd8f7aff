package boltcheck

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
)

// twice makes a file whose last two transactions wrote first and then second under one key.
func twice(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second, NoFreelistSync: true, PageSize: 4096})
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"zero", "first", "second"} {
		err := db.Update(func(tx *bolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte("b"))
			if err != nil {
				return err
			}
			return b.Put([]byte("key"), []byte(value))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func stored(t *testing.T, path string) (value string) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_ = db.View(func(tx *bolt.Tx) error {
		value = string(tx.Bucket([]byte("b")).Get([]byte("key")))
		return nil
	})
	return value
}

// TestP21_TornTransactionIsTakenBack: when the pages of the last transaction are torn, the one before it is whole.
func TestP21_TornTransactionIsTakenBack(t *testing.T) {
	path, f, all := opened(t)
	if _, err := f.WriteAt(make([]byte, 64), int64(all[0].root)*4096); err != nil {
		t.Fatal(err)
	}
	if err := File(path); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("the torn file passes: %v", err)
	}
	if err := Older(path); err != nil {
		t.Fatalf("the older tree: %v", err)
	}
	if err := Revert(path); err != nil {
		t.Fatal(err)
	}
	if err := File(path); err != nil {
		t.Fatal(err)
	}
	if got := stored(t, path); got != "first" {
		t.Errorf("it holds %q", got)
	}
	if err := Older(path); !errors.Is(err, errNoOlder) {
		t.Errorf("there is nothing older any more: %v", err)
	}
}

// opened is what twice makes, open for whoever damages it, and its two meta pages.
func opened(t *testing.T) (path string, f *os.File, all []meta) {
	t.Helper()
	path = twice(t)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if all, err = metas(f, info.Size()); err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	return path, f, all
}

// TestP21_TornMetaPageNeedsNoRepair: bbolt itself goes on from the older meta page when the newer one is torn, and so does the check.
func TestP21_TornMetaPageNeedsNoRepair(t *testing.T) {
	path, f, all := opened(t)
	if _, err := f.WriteAt([]byte("torn"), all[0].at+headerSize+20); err != nil {
		t.Fatal(err)
	}
	if err := File(path); err != nil {
		t.Fatal(err)
	}
	if got := stored(t, path); got != "first" {
		t.Errorf("it holds %q", got)
	}
}

func TestRevertRefusesAFileWithoutAWholeOlderTree(t *testing.T) {
	path, f, all := opened(t)
	if _, err := f.WriteAt(make([]byte, 64), int64(all[1].root)*4096); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(path)
	if err := Revert(path); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("got %v", err)
	}
	if after, _ := os.ReadFile(path); string(before) != string(after) {
		t.Error("the file was changed")
	}
}
