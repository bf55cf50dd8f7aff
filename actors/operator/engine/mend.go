package engine

import (
	"slices"
	"time"
)

// mendFloor is the shortest time between two tries that changes of one manifest bring about while it waits in back-off.
const mendFloor = time.Second

// mending is when a manifest was last woken from its back-off, and whether it is owed another time.
type mending struct {
	at   time.Time
	owed bool
}

// mend lets a manifest that waits for its next try have it now, or as soon as its last one is mendFloor ago.
func (d *dispatcher) mend(key Key, now time.Time) {
	if last, ok := d.mended[key]; ok && now.Sub(last.at) < mendFloor {
		d.mended[key] = mending{at: last.at, owed: true}
		return
	}
	if d.pool.Wake(key.String()) {
		d.mended[key] = mending{at: now}
	}
}

// payOwed gives the tries that were put off, and forgets what is long enough ago.
func (d *dispatcher) payOwed(now time.Time) {
	for _, key := range d.ownedLongAgo(now) {
		m := d.mended[key]
		delete(d.mended, key)
		if m.owed {
			d.mend(key, now)
		}
	}
}

// ownedLongAgo lists the manifests that may be tried again, in order.
func (d *dispatcher) ownedLongAgo(now time.Time) (keys []Key) {
	for key, m := range d.mended {
		if now.Sub(m.at) >= mendFloor {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, Key.compare)
	return keys
}

// owes tells whether a manifest is owed a try.
func (d *dispatcher) owes() bool {
	for _, m := range d.mended {
		if m.owed {
			return true
		}
	}
	return false
}
