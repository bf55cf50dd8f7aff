package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// board is what is known of every manifest, and where actors ask to be ended. It outlives the generations of actors and dispatchers.
//
// An actor asks to be ended with the number of the last wake it has. Only when that is the last one sent is it ended. Otherwise it is sent a
// count, once, and asks again when it has got that far: what it does not have by then was lost with an earlier generation of it. The dispatcher alone sends and ends, so nothing can be sent between the look and the end.
type board struct {
	limit int

	mu      sync.Mutex
	entries map[Key]*entry
	// actors is how many entries have one, refusals how many are refused.
	actors, refusals int
	dues             dues
	// base is the beginning of the times of dues.
	base time.Time
	// requests are actors that ask to be ended; nudges manifests that need a pass whatever their revision.
	requests []request
	nudges   []Key
	// flights are the passes that have not returned, those of abandoned actors included.
	flights map[Key][]*flight
	flying  int
	// pardons are how many passes those manifests may have in all that have changed since theirs hang.
	pardons map[Key]int
	// used is how many of limit are taken; queue those that wait.
	used  int
	queue []Key
	// ring tells the dispatcher that there is something to do; nil while there is none.
	ring func()
}

// entry is what is known of one manifest, whether it has an actor or not. There can be very many: mind its size.
type entry struct {
	key Key
	// sent is the number of the last wake sent to its actor, seen the revision that its last pass saw.
	sent, seen uint64
	// counted is the number of the last count that it was sent and has not answered.
	counted uint64
	// due is when the next pass of a manifest without actor is due, and place where it is among those.
	due   int64
	place int32
	// gains counts how often it was gained.
	gains uint32
	// holder is the pass that takes one of the limit; granted is set when one is kept for it, queued while it waits.
	holder          *flight
	granted, queued bool
	// actor is set while it has one, refused while Start refuses it.
	actor, refused bool
}

// request is an actor that asks to be ended.
type request struct {
	key    Key
	number uint64
	// due is when its next pass is due; zero for never.
	due time.Time
	// gone: the manifest is to be forgotten.
	gone bool
}

// flight is one pass.
type flight struct {
	key    Key
	cancel context.CancelCauseFunc
	// cancelled is set when it was called off, admitted when Start let it begin.
	cancelled, admitted bool
}

func newBoard(limit int) *board {
	return &board{limit: limit, entries: map[Key]*entry{}, flights: map[Key][]*flight{}, pardons: map[Key]int{}}
}

// compare orders keys.
func (k Key) compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Namespace, other.Namespace), cmp.Compare(k.Name, other.Name))
}

// listen makes ring the way to the dispatcher, from now on; base is the time at which the first one began.
func (b *board) listen(ring func(), now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ring = ring
	if b.base.IsZero() {
		b.base = now
	}
}

// knock tells the dispatcher; the lock is held.
func (b *board) knock() {
	if b.ring != nil {
		b.ring()
	}
}

// next is what a wake comes to.
type next uint8

const (
	// drop: it is no news, or its manifest has no passes at present.
	drop next = iota
	// start: an actor is to be made.
	start
	// tell: the actor there is is to be told.
	tell
)

// wake judges a wake; has tells whether the manifest exists. Revision 0 is news whatever was seen.
func (b *board) wake(key Key, revision uint64, has func(Key) bool) next {
	b.mu.Lock()
	e := b.entries[key]
	resting := e == nil || !e.actor
	b.mu.Unlock()
	exists := !resting || has(key) // asked without the lock: it is somebody else's code
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e = b.entries[key]; {
	case e == nil && !exists:
		return drop
	case e == nil:
		e = b.add(key)
	case e.actor && !e.refused:
		return tell
	case !exists:
		b.forget(e)
		return drop
	case e.refused || revision != 0 && revision <= e.seen:
		return drop
	}
	return b.engage(e)
}

// add makes an entry; the lock is held.
func (b *board) add(key Key) *entry {
	e := &entry{key: key, place: nowhere}
	b.entries[key] = e
	return e
}

// engage gives an entry an actor, or lets it wait for its turn; the lock is held.
func (b *board) engage(e *entry) next {
	if b.limit > 0 && !e.granted && !b.take(e) {
		return drop
	}
	if b.limit > 0 {
		e.granted = true
	}
	b.dues.drop(e)
	e.actor = true
	b.actors++
	return start
}

// forget drops an entry without actor; the lock is held.
func (b *board) forget(e *entry) {
	b.dues.drop(e)
	b.refuse(e, false)
	b.vacate(e)
	delete(b.entries, e.key)
}

// refuse notes whether an entry is refused; the lock is held.
func (b *board) refuse(e *entry, yes bool) {
	if e.refused != yes {
		e.refused = yes
		b.refusals += map[bool]int{true: 1, false: -1}[yes]
	}
}

// send numbers the next message to an actor.
func (b *board) send(key Key) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.entries[key]; e != nil {
		e.sent++
		return e.sent
	}
	return 0
}

// retire asks for the end of an actor.
func (b *board) retire(r request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests = append(b.requests, r)
	b.knock()
}

// settle takes all requests and gives the actors to end, those that know of every wake, and those to send a count.
func (b *board) settle() (end, behind []Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.requests {
		e := b.entries[r.key]
		switch {
		case e == nil || !e.actor:
		case e.sent == r.number:
			b.end(e, r)
			end = append(end, r.key)
		case r.number >= e.counted:
			e.counted = e.sent + 1
			behind = append(behind, r.key)
		}
	}
	b.requests = b.requests[:0]
	return end, slices.DeleteFunc(behind, b.ended) // which have asked twice
}

// ended tells that a manifest has no actor; the lock is held.
func (b *board) ended(key Key) bool {
	e := b.entries[key]
	return e == nil || !e.actor
}

// end takes an entry its actor; the lock is held.
func (b *board) end(e *entry, r request) {
	e.actor, e.counted = false, 0
	b.actors--
	b.vacate(e)
	switch {
	case r.gone:
		b.forget(e)
	case !r.due.IsZero():
		b.dues.put(e, int64(r.due.Sub(b.base)))
	}
}

// ripe takes the resting manifests whose pass is due, at most so many.
func (b *board) ripe(now time.Time, most int) (keys []Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for at := int64(now.Sub(b.base)); len(b.dues) > 0 && b.dues[0].due <= at && len(keys) < most; {
		keys = append(keys, b.dues[0].key)
		b.dues.drop(b.dues[0])
	}
	return keys
}

// nextDue is how long after now the next pass of a resting manifest is due.
func (b *board) nextDue(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.dues) == 0 {
		return never
	}
	return time.Duration(b.dues[0].due) - now.Sub(b.base)
}

// keys lists what is known, in order.
func (b *board) keys() []Key {
	b.mu.Lock()
	keys := make([]Key, 0, len(b.entries))
	for key := range b.entries {
		keys = append(keys, key)
	}
	b.mu.Unlock()
	slices.SortFunc(keys, Key.compare)
	return keys
}

// crew is how many actors there should be.
func (b *board) crew() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.actors
}

// size is how many manifests are known.
func (b *board) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.entries)
}

// missed tells whether a manifest that there is has to be woken: it is not known, or has not seen its last change.
func (b *board) missed(key Key, revision uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[key]
	return e == nil || !e.refused && revision > e.seen && !e.queued && len(b.flights[key]) == 0
}

// stale tells that a pass has seen a revision already; 0 is seen by none.
func (b *board) stale(key Key, revision uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[key]
	return revision != 0 && e != nil && revision <= e.seen
}

// saw notes which revision the running pass of a manifest sees.
func (b *board) saw(key Key, revision uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.entries[key]; e != nil {
		e.seen = max(e.seen, revision)
	}
}

// nudge asks for a pass of a manifest.
func (b *board) nudge(key Key, gained bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.entries[key]; e != nil && gained {
		b.refuse(e, false)
		e.gains++
	}
	b.nudges = append(b.nudges, key)
	b.knock()
}

// nudged takes the manifests that were asked for.
func (b *board) nudged() []Key {
	b.mu.Lock()
	defer b.mu.Unlock()
	keys := b.nudges
	b.nudges = nil
	return keys
}

func (b *board) stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Stats{Manifests: len(b.entries), Actors: b.actors, Refused: b.refusals, Running: b.flying, Waiting: len(b.queue)}
}
