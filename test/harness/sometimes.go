package harness

import (
	"slices"
	"sync"
	"testing"
)

// Sometimes says that a condition must hold in at least one of the seeds of a Sim: that a test
// gets where it is meant to get. It is called where the condition can be judged, true or not.
func (k *Kit) Sometimes(name string, holds bool) {
	if k.chances != nil {
		k.chances.note(name, holds)
	}
}

// chances are the conditions of Sometimes.
type chances struct {
	mu   sync.Mutex
	held map[string]int
}

func (c *chances) note(name string, holds bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		c.held = map[string]int{}
	}
	n := c.held[name]
	if holds {
		n++
	}
	c.held[name] = n
}

// judge fails the test for each that never held.
func (c *chances) judge(t testing.TB, seeds uint64) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var never []string
	for name, n := range c.held {
		if n == 0 {
			never = append(never, name)
		}
	}
	slices.Sort(never)
	for _, name := range never {
		t.Errorf("in none of %d seeds: %s", seeds, name)
	}
}
