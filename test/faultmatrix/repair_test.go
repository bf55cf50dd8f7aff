package faultmatrix

import (
	"testing"
	"time"
)

// quickly is how soon a panic and a taken port have to be repaired.
const quickly = time.Second

// holdRepairs holds how soon the tree runs again after its first fault.
func (m *matrix) holdRepairs(t *testing.T) {
	t.Helper()
	for _, f := range faults {
		if !f.quick {
			continue
		}
		if got := p99(m.repairs(f.name)); got > quickly {
			t.Errorf("after %q the tree runs again within %v (p99), not %v", f.name, got, quickly)
		}
	}
}
