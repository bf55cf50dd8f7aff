package placement

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// BenchmarkPlace is the scheduler's own work for one pod: compile, place, assume.
func BenchmarkPlace(b *testing.B) {
	for _, size := range []struct{ nodes, pods int }{{20, 500}, {5000, 10000}} {
		b.Run(fmt.Sprintf("%d-nodes", size.nodes), func(b *testing.B) {
			var nodes []*v1.Node
			for _, name := range names("n", size.nodes) {
				nodes = append(nodes, makeNode(name, offers(v1.ResourceCPU, "64"), offers(v1.ResourcePods, "250"), label("fake", "true")))
			}
			var pods []*v1.Pod
			for _, name := range names("p", size.pods) {
				pods = append(pods, makePod(name, ownedBy("rs"), requests(v1.ResourceCPU, "10m"), selects("fake", "true")))
			}
			b.ReportAllocs()
			for b.Loop() {
				c := given(nodes)
				for _, p := range pods {
					d := c.Compile(p)
					c.Assume(d, c.Place(d).Node)
				}
			}
			b.ReportMetric(float64(b.N*size.pods)/b.Elapsed().Seconds(), "pods/s")
		})
	}
}
