package hotloop

import "time"

// version is one content of an object and who wrote it.
type version struct {
	content uint64
	writer  Writer
}

// history is what is known of one object that reconcilers write.
type history struct {
	last time.Time
	// ours is set once a reconciler has written it.
	ours bool
	// ring holds the last contents, the newest at next-1.
	ring [ringSize]version
	next int
	// undone counts the writes of two writers that restored what the other had replaced.
	undone [2]undo
	// writer wrote last.
	writer Writer
}

// undo counts for one of two writers.
type undo struct {
	writer Writer
	count  int
}

// touch notes a write at a time and forgets what is too old.
func (h *history) touch(now time.Time, w Writer) {
	if now.Sub(h.last) >= quiet {
		*h = history{}
	}
	h.last, h.writer = now, w
	h.ours = h.ours || w.Ours()
}

// push notes a content. noOp is set when it is what was there before, returned when it was there some time before.
func (h *history) push(w Writer, content uint64) (noOp, returned bool) {
	newest, before := h.at(1), h.at(2)
	if newest.content == content {
		return true, false
	}
	if newest.writer != w && newest.content != 0 && before.content == content {
		h.countUndo(w, newest.writer)
	}
	returned = h.holds(content)
	h.ring[h.next] = version{content, w}
	h.next = (h.next + 1) % ringSize
	return false, returned
}

// at is the n-th newest version.
func (h *history) at(n int) version { return h.ring[(h.next-n+2*ringSize)%ringSize] }

func (h *history) holds(content uint64) bool {
	for _, v := range h.ring {
		if v.content == content {
			return true
		}
	}
	return false
}

// countUndo counts for w against other; a third writer begins the count anew.
func (h *history) countUndo(w, other Writer) {
	u := &h.undone
	if !(u[0].writer == w && u[1].writer == other || u[0].writer == other && u[1].writer == w) {
		*u = [2]undo{{writer: w}, {writer: other}}
	}
	for i := range u {
		if u[i].writer == w {
			u[i].count++
		}
	}
}

// fighters are the two writers that undo each other, if they have done so often enough.
func (h *history) fighters() (a, b Writer, yes bool) {
	return h.undone[0].writer, h.undone[1].writer, h.undone[0].count >= undos && h.undone[1].count >= undos
}

// clear forgets the contents, as after a trip.
func (h *history) clear() { *h = history{last: h.last, ours: h.ours, writer: h.writer} }
