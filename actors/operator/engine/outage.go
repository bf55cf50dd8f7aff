package engine

import (
	"sync"
	"time"
)

// While nobody answers.
const (
	// outageAfter is how many passes in a row, no two of one manifest behind each other, must fail because nobody answers before it is
	// taken for an outage. What only one manifest meets is its own trouble.
	outageAfter = 3
	// probeEvery is the shortest time between two passes of one engine in an outage.
	probeEvery = time.Second
	// comeBack is the time within which the other manifests look again whether it is over. It doubles while more than crowd of them do so
	// between two passes, up to longestBack.
	comeBack, longestBack = 2 * time.Second, 5 * time.Minute
	crowd                 = 1000
)

// outage is what the manifests of one engine share about nobody answering. While nobody does, one pass in a second looks for all, and at
// the return the others come back one by one. It outlives generations.
type outage struct {
	mu     sync.Mutex
	failed int
	last   Key
	down   bool
	probe  time.Time
	// back is the comeBack at present, putOff how many were told to wait since the last pass.
	back   time.Duration
	putOff int
}

// admit tells how long a pass has to wait, zero for not at all. place is the manifest's between 0 and 1.
func (o *outage) admit(now time.Time, place float64) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.down {
		return 0
	}
	if now.Before(o.probe) {
		o.putOff++
		return probeEvery + time.Duration(place*float64(o.back))
	}
	o.hold(now, place)
	return 0
}

// hold keeps further passes away for a while, a little longer for some than for others.
func (o *outage) hold(now time.Time, place float64) {
	o.probe = now.Add(probeEvery + time.Duration(place*float64(probeEvery)/2))
	switch {
	case o.putOff > crowd:
		o.back = min(2*o.back, longestBack)
	case o.putOff < crowd/4:
		o.back = max(o.back/2, comeBack)
	}
	o.putOff = 0
}

// note takes the end of a pass that was answered or not. away tells that it failed of an outage that is known, changed that the outage
// began or ended with it.
func (o *outage) note(now time.Time, key Key, place float64, answered bool) (away, changed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if answered {
		changed = o.down
		o.failed, o.down = 0, false
		return false, changed
	}
	if o.failed == 0 || o.last != key {
		o.failed++
	}
	if o.last = key; o.failed >= outageAfter && !o.down {
		o.down, changed, o.back, o.putOff = true, true, comeBack, 0
		o.hold(now, place)
	}
	return o.down, changed
}
