package engine

import "container/heap"

// nowhere is the place of an entry that is not in the heap.
const nowhere = -1

// dues are the manifests that rest without an actor and whose next pass has a time, the soonest first. One heap of pointers costs a
// manifest less than a timer would.
type dues []*entry

// Len implements heap.Interface.
func (d dues) Len() int { return len(d) }

// Less implements heap.Interface. Of two at the same time the one with the smaller key comes first, so that nothing but the times decides.
func (d dues) Less(i, j int) bool {
	if d[i].due != d[j].due {
		return d[i].due < d[j].due
	}
	return d[i].key.compare(d[j].key) < 0
}

// Swap implements heap.Interface.
func (d dues) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].place, d[j].place = int32(i), int32(j)
}

// Push implements heap.Interface.
func (d *dues) Push(x any) {
	e := x.(*entry)
	e.place = int32(len(*d))
	*d = append(*d, e)
}

// Pop implements heap.Interface.
func (d *dues) Pop() any {
	last := len(*d) - 1
	e := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	e.place = nowhere
	return e
}

// put lets the next pass of an entry be due at a time.
func (d *dues) put(e *entry, due int64) {
	d.drop(e)
	e.due = due
	heap.Push(d, e)
}

// drop forgets when the next pass of an entry is due.
func (d *dues) drop(e *entry) {
	if e.place != nowhere {
		heap.Remove(d, int(e.place))
	}
}
