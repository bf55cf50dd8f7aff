package storage_test

import (
	"errors"
	"testing"

	"github.com/nodeactor/nodeactor/actors/operator/storage"
	"github.com/nodeactor/nodeactor/actors/operator/storage/storagetest"
)

// TestF101_MemoryIsAStore: the store in memory passes the suite.
func TestF101_MemoryIsAStore(t *testing.T) {
	storagetest.Run(t, func(*testing.T) storage.Store { return storage.Memory() })
}

// TestWatchFromTooFarBack: of changes that are not kept any more nothing is told, and from the first that is kept on everything is.
func TestWatchFromTooFarBack(t *testing.T) {
	const kept = 1 << 16
	s := storage.Memory()
	at := storage.Revision(0)
	for range kept + 10 {
		r, err := s.Write(t.Context(), storage.Write{Expected: at, ID: thing("a")})
		if err != nil {
			t.Fatal(err)
		}
		at = r
	}
	if _, err := s.Watch(9, storage.Filter{Objects: true}, func() {}); !errors.Is(err, storage.ErrCompacted) {
		t.Errorf("watched from what is not kept: %v", err)
	}
	f, err := s.Watch(10, storage.Filter{Objects: true}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	if changes, err := f.Take(); err != nil || len(changes) != 1 || changes[0].Revision != at {
		t.Errorf("told %+v, %v", changes, err)
	}
}
