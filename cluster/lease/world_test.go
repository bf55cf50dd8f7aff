package lease

import (
	"container/heap"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// world is several nodes, one authority and one store, played in true time, which none of them knows.
type world struct {
	rng       *rand.Rand
	now       time.Duration
	queue     queue
	nodes     []*machine
	manifests map[string]*truth
	ordered   []string
	authority *Authority
	// shared is set in every other world: there the nodes share their plans.
	shared *Shared
	clock  clock
	// disturbed is when something last happened that no node is to blame for, graced when the authority changed.
	disturbed, graced time.Duration
	// grace is set while the authority is new, graceEnds when that was seen last.
	grace     bool
	graceEnds time.Duration
	// ghosts is when there last was a live session of a node that something hinders.
	ghosts time.Duration
	calm   bool
	// moves is how many leases were taken in the calm.
	moves    int
	lastMove time.Duration
	reached  map[string]int
	trace    *strings.Builder
	order    uint64
}

// clock is somebody's own time: it runs fast or slow, and began anywhere.
type clock struct {
	offset time.Duration
	rate   float64
}

func (c clock) at(now time.Duration) Instant { return c.offset + Instant(float64(now)*c.rate) }

// machine is one host; its node is another one after each boot.
type machine struct {
	name  string
	boot  int
	id    SessionID
	node  *Node
	clock clock
	// up is set while there is a process, paused while it is stopped, cut while nobody reaches it.
	up, paused, cut, stopping bool
	// waiting is what came while it was paused.
	waiting []func()
	// work is what really runs, by manifest.
	work map[string]*work
	// frozen and slandered are when it was last paused or wrongly declared dead.
	frozen, slandered time.Duration
	// renewed is when the authority last heard of the session.
	renewed time.Duration
}

// work is one reconcile.
type work struct {
	fence Fence
	// stop is set when it was called off.
	stop bool
}

// truth is what is really stored of a manifest, and what the oracle knows of it.
type truth struct {
	name string
	live bool
	Stored
	// accepted is the epoch of the last effect that was accepted, highest the highest epoch there was.
	accepted, highest uint64
	// takeable is since when somebody could have taken it; freed by a graceful stop at stopped.
	takeable, stopped time.Duration
}

type happening struct {
	at    time.Duration
	order uint64
	do    func()
}

type queue []happening

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push is part of heap.Interface.
func (q *queue) Push(x any) { *q = append(*q, x.(happening)) }

// Pop is part of heap.Interface.
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// violation is the panic of a broken rule.
type violation string

func (w *world) assert(ok bool, format string, args ...any) {
	if !ok {
		panic(violation(fmt.Sprintf("%v: ", w.now) + fmt.Sprintf(format, args...)))
	}
}

func (w *world) note(format string, args ...any) {
	if w.trace != nil {
		fmt.Fprintf(w.trace, "%8v "+format+"\n", append([]any{w.now}, args...)...)
	}
}

func (w *world) after(d time.Duration, do func()) {
	w.order++
	heap.Push(&w.queue, happening{w.now + d, w.order, do})
}

// latency is how long a message is on its way.
func (w *world) latency() time.Duration {
	return time.Duration(1+w.rng.IntN(60)) * time.Millisecond
}

func newWorld(seed uint64, trace *strings.Builder) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 7)), manifests: map[string]*truth{}, reached: map[string]int{}, trace: trace}
	w.clock = w.anyClock()
	if seed%2 == 0 {
		w.shared = Share()
	}
	w.authority = NewAuthority(w.clock.at(0))
	for i := range 2 + w.rng.IntN(4) {
		w.nodes = append(w.nodes, &machine{name: fmt.Sprint("n", i), clock: w.anyClock(), frozen: -time.Hour, slandered: -time.Hour})
	}
	for i := range 1 + w.rng.IntN(12) {
		name := fmt.Sprint("m", i)
		w.manifests[name] = &truth{name: name, live: true}
	}
	w.ordered = slices.Sorted(maps.Keys(w.manifests))
	for _, m := range w.nodes {
		w.after(w.latency(), func() { w.start(m) })
	}
	return w
}

// anyClock runs up to three in a hundred fast or slow.
func (w *world) anyClock() clock {
	return clock{offset: time.Duration(w.rng.IntN(1e6)) * time.Second, rate: 0.97 + 0.06*w.rng.Float64()}
}

func (w *world) names() []string { return w.ordered }

// start boots a machine.
func (w *world) start(m *machine) {
	if m.up {
		return
	}
	m.boot++
	m.id = SessionID{m.name, fmt.Sprint(m.boot)}
	m.node, m.up, m.paused, m.stopping, m.waiting = NewWith(m.id, w.shares()), true, false, false, nil
	m.work, m.renewed = map[string]*work{}, w.now
	w.disturb()
	w.note("%s starts", m.id)
	w.resync(m)
	w.ticking(m, m.boot)
}

func (w *world) shares() *Shared {
	if w.shared == nil {
		return &Shared{}
	}
	return w.shared
}

func (w *world) disturb() { w.disturbed = w.now }

// ticking ticks a boot while it lasts.
func (w *world) ticking(m *machine, boot int) {
	if !m.up || m.boot != boot {
		return
	}
	if !m.paused {
		w.step(m, Tick{})
		w.begin(m)
	}
	w.after(TickEvery, func() { w.ticking(m, boot) })
}

// tell lets a process take an event, now or when it goes on.
func (w *world) tell(m *machine, boot int, e Event) {
	switch {
	case !m.up || m.boot != boot:
	case m.paused:
		m.waiting = append(m.waiting, func() { w.tell(m, boot, e) })
	default:
		w.step(m, e)
	}
}

func (w *world) step(m *machine, e Event) {
	if w.trace != nil {
		if _, tick := e.(Tick); !tick {
			w.note("%s <- %T%v", m.id, e, e)
		}
	}
	// The node's slice is its own, and carrying out one action may not disturb the others.
	for _, a := range slices.Clone(m.node.Step(m.clock.at(w.now), e)) {
		w.carryOut(m, a)
	}
}

func (w *world) carryOut(m *machine, a Action) {
	if w.trace != nil {
		w.note("%s -> %T%v", m.id, a, a)
	}
	boot, id := m.boot, m.id
	switch a := a.(type) {
	case Renew:
		w.request(m, func() {
			w.expire()
			err := w.authority.Renew(w.clock.at(w.now), id, a.Session.Leaving)
			if m.id == id {
				m.renewed = w.now
			}
			w.feed()
			w.reply(m, boot, Renewed{Seq: a.Seq, Ended: errors.Is(err, ErrSessionEnded)})
		})
	case End:
		w.reached["ended"]++
		w.request(m, func() {
			w.authority.End(w.clock.at(w.now), id)
			w.feed()
		})
		w.after(100*time.Millisecond, func() {
			if m.up && m.boot == boot && !m.paused {
				w.exit(m)
			}
		})
	case Append:
		w.request(m, func() { w.write(m, boot, a) })
		w.after(answerWithin, func() { w.tell(m, boot, Answered{Write: a.Write}) })
	case Cancel:
		w.reached["cancelled "+a.Why.String()]++
		if at := m.work[a.Fence.Manifest]; at != nil {
			w.assert(at.fence == a.Fence, "%s cancels %v, %v runs", m.id, a.Fence, at.fence)
			at.stop = true
		}
	}
}

// request sends something to the authority or the store. It may be lost, and it may be late.
func (w *world) request(m *machine, do func()) {
	if m.cut || w.lost() {
		return
	}
	late := time.Duration(0)
	if !w.calm && w.rng.IntN(100) == 0 {
		late = time.Duration(w.rng.IntN(20)) * time.Second
		w.reached["late"]++
		w.disturb()
	}
	w.after(w.latency()+late, do)
}

func (w *world) reply(m *machine, boot int, e Event) {
	w.after(w.latency(), func() {
		if !m.cut && !w.lost() {
			w.tell(m, boot, e)
		}
	})
}

// lost tells whether a message is lost.
func (w *world) lost() bool {
	if w.calm || w.rng.IntN(60) > 0 {
		return false
	}
	w.reached["lost"]++
	w.disturb()
	return true
}

// feed lets all whom the authority reaches know its sessions. A feed is a stream: it is late, not lost.
func (w *world) feed() {
	sessions := w.authority.Sessions(w.clock.at(w.now))
	for _, m := range w.nodes {
		w.stream(m, sessions)
	}
}

func (w *world) stream(m *machine, e Event) {
	if !m.up || m.cut {
		return
	}
	boot := m.boot
	w.after(20*time.Millisecond, func() {
		if !m.cut {
			w.tell(m, boot, e)
		}
	})
}

// resync lets a process read all there is.
func (w *world) resync(m *machine) {
	for _, name := range w.names() {
		at := w.manifests[name]
		w.stream(m, Manifest{Name: name, Gone: !at.live})
		w.stream(m, Observed{name, at.Stored})
	}
	w.stream(m, w.authority.Sessions(w.clock.at(w.now)))
}
