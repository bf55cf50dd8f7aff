package boltcheck

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
)

// made writes a file with branches, overflow pages, inline and nested buckets.
func made(t testing.TB, keepFreelist bool) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoFreelistSync: !keepFreelist})
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		err = db.Update(func(tx *bolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte("many"))
			if err != nil {
				return err
			}
			for i := range 2000 {
				if err := b.Put(fmt.Appendf(nil, "key-%05d", i*(round+1)), []byte(strings.Repeat("v", 20+i%50))); err != nil {
					return err
				}
			}
			if err := b.Put([]byte("large"), make([]byte, 50_000)); err != nil {
				return err
			}
			small, err := tx.CreateBucketIfNotExists([]byte("small"))
			if err != nil {
				return err
			}
			if _, err := small.CreateBucketIfNotExists([]byte("inner")); err != nil {
				return err
			}
			return small.Put([]byte("a"), []byte("b"))
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

func TestGoodFilesPass(t *testing.T) {
	for _, keep := range []bool{true, false} {
		if err := File(made(t, keep)); err != nil {
			t.Error(err)
		}
	}
	if err := File(filepath.Join(t.TempDir(), "absent")); err != nil {
		t.Error(err)
	}
}

// Whatever passes the check, bbolt can open and walk; a file that it cannot walk would end this very process.
func TestWhatPassesCanBeWalked(t *testing.T) {
	path := made(t, false)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	refused := 0
	const cases = 200
	for range cases {
		if err := os.WriteFile(path, damaged(good, rnd), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := File(path); err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			refused++
			continue
		}
		readAll(t, path)
	}
	t.Logf("%d of %d damaged files refused", refused, cases)
	if refused == 0 || refused == cases {
		t.Error("the cases are all alike")
	}
}

// damaged returns a copy that was truncated, or has a page of zeros, noise, or another page's content.
func damaged(good []byte, rnd *rand.Rand) []byte {
	b := append([]byte(nil), good...)
	const page = 4096
	n := len(b) / page
	at := rnd.IntN(n) * page
	switch rnd.IntN(4) {
	case 0:
		return b[:rnd.IntN(len(b))]
	case 1:
		clear(b[at : at+page])
	case 2:
		for i := at + rnd.IntN(page); i < at+page; i++ {
			b[i] = byte(rnd.Uint32())
		}
	case 3:
		other := rnd.IntN(n) * page
		copy(b[at:at+page], good[other:other+page])
	}
	return b
}

func readAll(t *testing.T, path string) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second, NoFreelistSync: true})
	if err != nil {
		t.Fatalf("the check passed, and bbolt says: %v", err)
	}
	defer db.Close()
	err = db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(_ []byte, b *bolt.Bucket) error { return each(b) })
	})
	if err != nil {
		t.Fatal(err)
	}
}

func each(b *bolt.Bucket) error {
	return b.ForEach(func(k, v []byte) error {
		if v == nil {
			return each(b.Bucket(k))
		}
		return nil
	})
}

func BenchmarkFile(b *testing.B) {
	path := made(b, false)
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	for b.Loop() {
		if err := File(path); err != nil {
			b.Fatal(err)
		}
	}
}
