package lease_test

import (
	"testing"

	"github.com/nodeactor/nodeactor/cluster/lease"
	"github.com/nodeactor/nodeactor/cluster/lease/leasetest"
)

// TestF101_MemoryIsAStore: the memory implementation passes the suite that every other one has to pass.
func TestF101_MemoryIsAStore(t *testing.T) {
	leasetest.Run(t, func(*testing.T) lease.Store { return &lease.Memory{} })
}
