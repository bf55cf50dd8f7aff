package engine

import (
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

// seek looks for manifests that nothing has woken: all of them at the start, after wakes or actors were lost, and once in a while
// those that were missed.
func (d *dispatcher) seek(ctx supervision.Context, now time.Time, lost bool) {
	if now.Sub(d.looked) >= lookEvery {
		d.looked = now
		lost = lost || d.pool.Len() < d.board.crew()
	}
	if lost {
		d.listed = false
	}
	switch {
	case d.listing:
	case !d.listed && d.isReady() && !now.Before(d.retry):
		d.await(ctx)
	case d.listed && d.timings.Fallback > 0 && now.Sub(d.swept) >= d.timings.Fallback:
		d.swept = now
		d.sweep()
	}
}

// isReady tells whether the source has something to read.
func (d *dispatcher) isReady() bool {
	a, ok := d.source.(Awaiting)
	return !ok || a.Ready()
}

// synced takes the end of the wait for the source. A source that is down is no fault of the dispatcher: it is asked again.
func (d *dispatcher) synced(ctx supervision.Context, done supervision.JobDone) {
	d.listing = false
	now := ctx.Clock().Now()
	revision, ok := done.Value.(uint64)
	if done.Err != nil || !ok {
		d.retry = now.Add(retryEvery)
		return
	}
	d.listed, d.swept, d.retry = true, now, time.Time{}
	d.list(revision)
}

// list wakes all manifests there are and all that are known, whatever was missed.
func (d *dispatcher) list(revision uint64) {
	keys := d.board.keys()
	known := make(map[Key]bool, len(keys))
	for _, key := range keys {
		known[key] = true
	}
	d.source.Keys(func(key Key, changed uint64) bool {
		delete(known, key)
		if changed == 0 {
			changed = revision
		}
		d.todo = append(d.todo, Wake{Key: key, Revision: changed})
		return true
	})
	for _, key := range keys {
		if known[key] {
			d.todo = append(d.todo, Wake{Key: key, Revision: revision})
		}
	}
}

// sweep wakes the manifests that were missed, and forgets those whose end was.
func (d *dispatcher) sweep() {
	there := 0
	d.source.Keys(func(key Key, changed uint64) bool {
		there++
		if d.board.missed(key, changed) {
			d.todo = append(d.todo, Wake{Key: key, Revision: changed})
		}
		return true
	})
	if d.board.size() <= there {
		return
	}
	for _, key := range d.board.keys() {
		if !d.source.Has(key) {
			d.todo = append(d.todo, Wake{Key: key})
		}
	}
}
