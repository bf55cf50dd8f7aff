package storage_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nodeactor/nodeactor/actors/operator/storage"
)

// BenchmarkWrite writes objects of 500 bytes, by one and by many writers that share waits for the disk.
func BenchmarkWrite(b *testing.B) {
	must := func(s storage.Store, err error) storage.Store {
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = s.Close() })
		return s
	}
	for name, open := range map[string]func() storage.Store{
		"memory": func() storage.Store { return must(storage.Memory(), nil) },
		"bolt":   func() storage.Store { return must(storage.OpenBolt(filepath.Join(b.TempDir(), "store.db"))) },
		"guest": func() storage.Store {
			dir := b.TempDir()
			must(storage.OpenShared(dir))
			return must(storage.OpenShared(dir))
		},
	} {
		for _, writers := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/%d", name, writers), func(b *testing.B) {
				writeAll(b, open(), writers)
			})
		}
	}
}

func writeAll(b *testing.B, s storage.Store, writers int) {
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range writers {
		wg.Go(func() {
			for {
				i := next.Add(1)
				if i > int64(b.N) {
					return
				}
				if _, err := s.Write(b.Context(), storage.Write{ID: thing(fmt.Sprintf("%09d", i)), Value: make([]byte, 500)}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}
