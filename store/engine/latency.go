package engine

import (
	"sync/atomic"
	"time"
)

// commitBounds are the upper bounds, in seconds, of the classes that the time of a write is counted in: from a fast disk's sync to the
// patience of a client.
var commitBounds = [...]float64{.0005, .001, .002, .004, .008, .016, .032, .064, .128, .256, .512, 1, 2, 4, 8, 16, 32, 64}

// Latencies says how long things took.
type Latencies struct {
	Count   uint64
	Sum     float64            // seconds
	Buckets map[float64]uint64 // how many took at most so many seconds
}

// latencies counts how long things took, without a lock.
type latencies struct {
	counts [len(commitBounds) + 1]atomic.Uint64
	nanos  atomic.Int64
}

func (l *latencies) add(d time.Duration) {
	class := 0
	for class < len(commitBounds) && d.Seconds() > commitBounds[class] {
		class++
	}
	l.counts[class].Add(1)
	l.nanos.Add(int64(d))
}

func (l *latencies) read() Latencies {
	out := Latencies{Buckets: make(map[float64]uint64, len(commitBounds)), Sum: time.Duration(l.nanos.Load()).Seconds()}
	for i := range l.counts {
		out.Count += l.counts[i].Load()
		if i < len(commitBounds) {
			out.Buckets[commitBounds[i]] = out.Count
		}
	}
	return out
}
