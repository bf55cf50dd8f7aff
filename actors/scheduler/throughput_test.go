package scheduler

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkSchedule is the way of a pod through the whole actor, with bindings that cost nothing: what is left is the scheduler's own time.
func BenchmarkSchedule(b *testing.B) {
	for _, size := range []struct{ nodes, pods int }{{20, 500}, {5000, 10000}} {
		b.Run(fmt.Sprintf("%d-nodes-%d-pods", size.nodes, size.pods), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				w := newWorld()
				for i := range size.nodes {
					w.putNode(testNode(fmt.Sprintf("n%05d", i), "64"))
				}
				play(b, w)
				time.Sleep(100 * time.Millisecond)
				b.StartTimer()
				for i := range size.pods {
					w.putPod(withCPU(testPod(fmt.Sprintf("p%05d", i), 0), "10m"))
				}
				for w.bound() < size.pods {
					time.Sleep(time.Millisecond)
				}
			}
			b.ReportMetric(float64(b.N*size.pods)/b.Elapsed().Seconds(), "pods/s")
		})
	}
}
