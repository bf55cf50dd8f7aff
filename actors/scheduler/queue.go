package scheduler

import (
	"cmp"
	"container/heap"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodeactor/nodeactor/actors/scheduler/placement"
)

// state says where a pending pod is.
type state int

const (
	// active pods are placed as soon as the actor gets to them.
	active state = iota
	// resting pods are placed when their back-off has passed.
	resting
	// waiting pods fitted nowhere; a helpful change or the flush moves them on.
	waiting
	// binding pods have a node and their binding is being stored.
	binding
)

// entry is one pending pod.
type entry struct {
	demand *placement.Demand
	state  state
	// order is the arrival, which decides between equal priorities.
	order uint64
	// attempts counts placements and bindings that failed; tried is when the last one did.
	attempts  int
	tried     time.Time
	notBefore time.Time
	at        int // position in the active heap
}

func (e *entry) pod() *v1.Pod { return e.demand.Pod() }

// queue holds the pending pods. It is pure: every method that needs the time is given it.
type queue struct {
	entries map[types.UID]*entry
	active  activeHeap
	counts  [binding + 1]int
	arrived uint64
}

func newQueue() *queue { return &queue{entries: map[types.UID]*entry{}} }

// offer takes a pending pod as it was read. A pod that is known is moved on only when its owner changed something that matters to
// its placing, for the scheduler's own writes come back here too.
func (q *queue) offer(pod *v1.Pod, compile func(*v1.Pod) *placement.Demand) {
	e := q.entries[pod.UID]
	if e == nil {
		q.arrived++
		e = &entry{demand: compile(pod), order: q.arrived}
		q.entries[pod.UID] = e
		q.counts[active]++
		heap.Push(&q.active, e)
		return
	}
	changed := matters(e.pod(), pod)
	e.demand = compile(pod)
	if changed && e.state == waiting {
		q.move(e, active)
	}
}

func matters(before, after *v1.Pod) bool {
	return !maps.Equal(before.Labels, after.Labels) || !apiequality.Semantic.DeepEqual(&before.Spec, &after.Spec)
}

// remove forgets the pod: it was bound, has ended or is gone.
func (q *queue) remove(uid types.UID) {
	e := q.entries[uid]
	if e == nil {
		return
	}
	if e.state == active {
		heap.Remove(&q.active, e.at)
	}
	q.counts[e.state]--
	delete(q.entries, uid)
}

// move changes the state of a known entry.
func (q *queue) move(e *entry, to state) {
	if e.state == to {
		return
	}
	if e.state == active {
		heap.Remove(&q.active, e.at)
	}
	q.counts[e.state]--
	e.state = to
	q.counts[to]++
	if to == active {
		heap.Push(&q.active, e)
	}
}

// next is the pod to place now: the highest priority, the oldest among equals; nil when none is active. It stays active until moved.
func (q *queue) next() *entry {
	if len(q.active) == 0 {
		return nil
	}
	return q.active[0]
}

// failed notes a try that failed and sets when the next one may be.
func (q *queue) failed(e *entry, now time.Time, to state) {
	e.attempts++
	e.tried = now
	e.notBefore = now.Add(backoff(e.attempts))
	q.move(e, to)
}

// backoff doubles from backoffFirst up to backoffLast.
func backoff(attempts int) time.Duration {
	d := backoffFirst
	for ; attempts > 1 && d < backoffLast; attempts-- {
		d *= 2
	}
	return min(d, backoffLast)
}

// release moves waiting pods on after a change of the cluster that may help those which the filter picks (nil: all).
func (q *queue) release(now time.Time, pick func(*entry) bool) {
	if q.counts[waiting] == 0 {
		return
	}
	for _, e := range q.entries {
		if e.state == waiting && (pick == nil || pick(e)) {
			q.moveOn(e, now)
		}
	}
}

func (q *queue) moveOn(e *entry, now time.Time) {
	if e.notBefore.After(now) {
		q.move(e, resting)
		return
	}
	q.move(e, active)
}

// ripen activates the resting pods whose time has come and flushes those that have waited long enough.
func (q *queue) ripen(now time.Time) {
	if q.counts[resting]+q.counts[waiting] == 0 {
		return
	}
	for _, e := range q.entries {
		ripe := e.state == resting && !e.notBefore.After(now) || e.state == waiting && now.Sub(e.tried) >= flushAfter
		if ripe {
			q.move(e, active)
		}
	}
}

// wakeIn is how long the queue may be left alone when nothing happens; false when there is no time to watch for.
func (q *queue) wakeIn(now time.Time) (time.Duration, bool) {
	if q.counts[waiting]+q.counts[resting] == 0 {
		return 0, false
	}
	in := reviewEvery
	if q.counts[resting] == 0 {
		return in, true
	}
	for _, e := range q.entries {
		if e.state == resting {
			in = min(in, max(e.notBefore.Sub(now), time.Millisecond))
		}
	}
	return in, true
}

// activeHeap orders entries by priority, then by arrival.
type activeHeap []*entry

func (h activeHeap) Len() int { return len(h) }

func (h activeHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[j].demand.Priority(), h[i].demand.Priority()), cmp.Compare(h[i].order, h[j].order)) < 0
}

func (h activeHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push implements heap.Interface.
func (h *activeHeap) Push(x any) {
	e := x.(*entry)
	e.at = len(*h)
	*h = append(*h, e)
}

// Pop implements heap.Interface.
func (h *activeHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}
