package harness

// timer is one pending call of the virtual clock.
type timer struct {
	at  int64
	seq uint64
	f   func()
	// of names who set it.
	of string
	// kind tells what waits for it.
	kind timerKind
	// place is the index in the heap, -1 when it is not in it.
	place int
}

// timerKind tells timers apart by what they mean for rest and quiescence.
type timerKind uint8

const (
	// ordinary timers keep a system from being at rest, but not from being settled.
	ordinary timerKind = iota
	// delayed work keeps it from being settled, too.
	delayed
	// background timers keep it from nothing.
	background
	timerKinds
)

// timerHeap orders timers by deadline, and those with one deadline by when they were set.
type timerHeap struct {
	all []*timer
	// of counts the timers of each kind.
	of [timerKinds]int
}

func (h *timerHeap) less(i, j int) bool {
	a, b := h.all[i], h.all[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

func (h *timerHeap) swap(i, j int) {
	h.all[i], h.all[j] = h.all[j], h.all[i]
	h.all[i].place, h.all[j].place = i, j
}

func (h *timerHeap) push(t *timer) {
	t.place = len(h.all)
	h.all = append(h.all, t)
	h.of[t.kind]++
	h.up(t.place)
}

// first is the timer that is due first, nil when there is none.
func (h *timerHeap) first() *timer {
	if len(h.all) == 0 {
		return nil
	}
	return h.all[0]
}

// remove takes a timer out; false means that it was not in.
func (h *timerHeap) remove(t *timer) bool {
	i, last := t.place, len(h.all)-1
	if i < 0 {
		return false
	}
	h.swap(i, last)
	h.all[last] = nil
	h.all = h.all[:last]
	if i < last && !h.down(i) {
		h.up(i)
	}
	t.place = -1
	h.of[t.kind]--
	return true
}

func (h *timerHeap) up(i int) {
	for parent := (i - 1) / 2; i > 0 && h.less(i, parent); parent = (i - 1) / 2 {
		h.swap(i, parent)
		i = parent
	}
}

func (h *timerHeap) down(i int) (moved bool) {
	for {
		child := 2*i + 1
		if child >= len(h.all) {
			return moved
		}
		if child+1 < len(h.all) && h.less(child+1, child) {
			child++
		}
		if !h.less(child, i) {
			return moved
		}
		h.swap(i, child)
		i, moved = child, true
	}
}
