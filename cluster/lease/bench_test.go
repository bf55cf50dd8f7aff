package lease

import (
	"fmt"
	"testing"
)

// BenchmarkTickAtRest is a tick of one of two nodes that share 100,000 manifests.
func BenchmarkTickAtRest(b *testing.B) {
	n := New(me)
	n.Step(0, Tick{})
	n.Step(0, Sessions{Live: []Session{{ID: me}, {ID: other}}})
	for i := range 100_000 {
		name := fmt.Sprint("default/m", i)
		n.Step(0, Manifest{Name: name})
		n.Step(0, Observed{name, Stored{Record{Holder: []SessionID{me, other}[i%2], Epoch: 1}, 1}})
	}
	n.Step(0, Renewed{Seq: 1})
	n.Step(startFor/4, Tick{})
	if n.Held() != 50_000 || len(n.releasing) > 0 {
		b.Fatal("not at rest")
	}
	b.ReportAllocs()
	for b.Loop() {
		n.Step(startFor/2, Tick{})
	}
}
