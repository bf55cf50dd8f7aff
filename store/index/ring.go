package index

import "sort"

const (
	// ringEvents bounds the events a ring keeps; slower subscribers read history from the engine.
	ringEvents = 2048
	// ringBytes bounds the values held by a ring, in bytes.
	ringBytes = 16 << 20
	// ringMinEvents are kept however large they are.
	ringMinEvents = 64
)

// ring holds the newest events of one resource. Positions count all events ever added.
type ring struct {
	buf   []Event // circular once full
	first uint64  // position of the oldest kept
	next  uint64  // position of the next added
	bytes int
	limit int   // of events
	floor int64 // all events with a revision above it are kept
}

func (r *ring) at(pos uint64) *Event { return &r.buf[pos%uint64(len(r.buf))] }

func (r *ring) add(e Event) {
	size := weight(e)
	for r.len() >= r.limit || (r.len() >= ringMinEvents && r.bytes+size > ringBytes) {
		r.drop()
	}
	if r.len() == len(r.buf) {
		r.grow()
	}
	*r.at(r.next) = e
	r.next++
	r.bytes += size
}

func (r *ring) len() int { return int(r.next - r.first) }

func (r *ring) drop() {
	e := r.at(r.first)
	r.bytes -= weight(*e)
	r.floor = e.Revision
	*e = Event{}
	r.first++
}

func (r *ring) grow() {
	buf := make([]Event, max(16, 2*len(r.buf)))
	for pos := r.first; pos < r.next; pos++ {
		buf[pos%uint64(len(buf))] = *r.at(pos)
	}
	r.buf = buf
}

// weight is what a ring is the only one to hold of e: the version it replaced.
func weight(e Event) int {
	if e.Prev == nil {
		return 0
	}
	return len(e.Prev.Value)
}

// after returns the position of the first event newer than revision; false when older ones are missing too.
func (r *ring) after(revision int64) (uint64, bool) {
	n := sort.Search(r.len(), func(i int) bool { return r.at(r.first+uint64(i)).Revision > revision })
	return r.first + uint64(n), revision >= r.floor
}
