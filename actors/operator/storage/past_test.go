package storage

import "testing"

// TestPast holds the history of a store in memory to that of a table: what was put is got until it is forgotten.
func TestPast(t *testing.T) {
	var p past
	for r := Revision(1); r <= 10; r++ {
		p.put(revisionKey(r), []byte{byte(r)})
		if r > 4 {
			p.forget(revisionKey(r - 4))
		}
		for q := Revision(0); q <= r+1; q++ {
			got := p.get(revisionKey(q))
			if kept := q > 0 && q <= r && q+4 > r; kept != (got != nil) || kept && got[0] != byte(q) {
				t.Errorf("at %d: %d is %v", r, q, got)
			}
		}
	}
}
