package storage_test

import (
	"testing"

	"github.com/nodeactor/nodeactor/actors/operator/storage"
	"github.com/nodeactor/nodeactor/actors/operator/storage/storagetest"
)

// TestF101_MemoryIsAStore: the store in memory passes the suite.
func TestF101_MemoryIsAStore(t *testing.T) {
	storagetest.Run(t, func(*testing.T) storage.Store { return storage.Memory() })
}
