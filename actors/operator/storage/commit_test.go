package storage

import "testing"

// TestAPanicBreaksOneWrite: of writes that share a transaction the one that panics fails, and all others are answered.
func TestAPanicBreaksOneWrite(t *testing.T) {
	c := newCommitter(&ram{buckets: map[string]map[string][]byte{}, sorted: map[string][]string{}}, func([]string, Revision) {}).(*committer)
	some := make([]*pending, 4)
	for i := range some {
		some[i] = &pending{write: func(*txn) error { return nil }, done: make(chan struct{})}
	}
	some[1].write = func(*txn) error { panic("planted") }
	func() {
		defer func() { _ = recover() }() // it goes on to whoever leads
		c.commit(some)
	}()
	for i, p := range some {
		select {
		case <-p.done:
		default:
			t.Fatalf("write %d is not answered", i)
		}
		if (p.err != nil) != (i == 1) {
			t.Errorf("write %d: %v", i, p.err)
		}
	}
}
