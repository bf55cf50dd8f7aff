package index

import (
	"fmt"
	"testing"
)

// TestCountIsWhatAListFinds: counted without looking at each item is what going through them would count.
func TestCountIsWhatAListFinds(t *testing.T) {
	r := newResource("/registry/a/", 0, 1)
	keys := []string{"/registry/a/", "/registry/a/zz", "/registry/b", "/registry/0"}
	for ns := range 7 {
		for n := range 13 * ns { // the first namespace is empty
			r.tree.Set(&Item{Key: fmt.Sprintf("/registry/a/n%d/o%03d", ns, n)})
		}
		keys = append(keys, fmt.Sprintf("/registry/a/n%d/", ns), fmt.Sprintf("/registry/a/n%d/o0%d", ns, ns), fmt.Sprintf("/registry/a/n%d/o%03d\x00", ns, 5*ns))
	}
	full := Snapshot{tree: r.tree.Copy()}
	for _, s := range []Snapshot{full, {}, {tree: newResource("/registry/a/", 0, 1).tree}} {
		for _, prefix := range keys {
			for _, from := range append(keys, "") {
				want := int64(0)
				s.Ascend(prefix, from, func(*Item) bool { want++; return true })
				if got := s.Count(prefix, from); got != want {
					t.Errorf("of %d items with prefix %q from %q on %d are counted, want %d", s.Len(), prefix, from, got, want)
				}
			}
		}
	}
	if full.Len() != 13*21 || full.Count("/registry/a/", "") != 13*21 {
		t.Errorf("%d items, counted %d", full.Len(), full.Count("/registry/a/", ""))
	}
}

func BenchmarkCount(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		r := newResource("/registry/a/", 0, 1)
		for i := range n {
			r.tree.Set(&Item{Key: fmt.Sprintf("/registry/a/n/%06d", i)})
		}
		s := Snapshot{tree: r.tree.Copy()}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if s.Count("/registry/a/", "/registry/a/n/000500") != int64(n-500) {
					b.Fatal("miscounted")
				}
			}
		})
	}
}
