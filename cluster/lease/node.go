package lease

import (
	"maps"
	"slices"
)

// Node is all that one node knows and decides of leases. Make it with New. It is not safe for concurrent use.
type Node struct {
	view
	now   Instant
	proof Proof
	// entries are the manifests by their numbers; the unused ones are made many at a time.
	entries []*entry
	unused  []entry
	crowd   crowd
	shared  *Shared
	// mine are the leases this node holds, releasing those of them it gives back, running those in which work runs.
	mine, releasing, running map[string]*entry
	balance                  balance
	stop                     stopping
	actions                  []Action
}

// entry is what is known of the lease of one manifest.
type entry struct {
	name string
	// number stands for the name, print is that of it; by is who holds it and at its place there, while the manifest is live.
	number, at int32
	print      uint64
	by         *holder
	Stored
	// since is since when the lease is takeable, reason why; 0 when it is not.
	since Instant
	// asked is when a write was asked for, waiting that it may yet be answered.
	asked Instant
	// working is the epoch under which work runs, 0 for none; cancelled that it was called off.
	working uint64
	// fenced is an epoch under which a write was refused.
	fenced uint64
	// live is set while the manifest exists.
	live, waiting, cancelled bool
	// giving is why the lease is being released; it stays until the record is another, because a release that was asked for may
	// be done at any time. gave is set when it was this node that gave it away for balance, and nobody has taken it yet.
	gave           bool
	giving, reason Reason
}

// New makes what a node begins with at its boot. The boot must be another one each time.
func New(me SessionID) *Node { return NewWith(me, &Shared{}) }

// NewWith is New for one of several nodes of one process, which share what they need not all work out for themselves.
func NewWith(me SessionID, with *Shared) *Node {
	return &Node{
		shared: with,
		view:   view{me: me, live: map[SessionID]Session{}, dead: map[SessionID]bool{}},
		crowd:  newCrowd(),
		mine:   map[string]*entry{}, releasing: map[string]*entry{}, running: map[string]*entry{},
	}
}

// Step takes one event that happened at now, and returns what is to be done about it. The slice is valid until the next call.
func (n *Node) Step(now Instant, e Event) []Action {
	n.now, n.actions = now, n.actions[:0]
	switch e := e.(type) {
	case Tick:
		n.tick()
	case Renewed:
		n.renewed(e)
	case Sessions:
		n.sessions(e)
	case Verdict:
		n.verdict(e)
	case Manifest:
		n.manifest(e)
	case Observed:
		n.observe(n.entry(e.Manifest), e.Stored)
	case Answered:
		n.answered(e)
	case Done:
		n.done(e.Fence)
	case Abandoned:
		n.abandoned(e.Fence)
	case Fenced:
		n.wasFenced(e.Fence)
	case Stop:
		n.leave()
	}
	return n.actions
}

// Start tells whether work on a manifest may begin, and under which fence. It counts as running until Done; none is begun beside it.
func (n *Node) Start(now Instant, manifest string) (Fence, bool) {
	e := n.find(manifest)
	if e == nil || !e.live || e.Holder != n.me || e.giving != 0 || e.working != 0 || e.fenced == e.Epoch {
		return Fence{}, false
	}
	if n.stop.on || !n.proof.MayStart(now) {
		return Fence{}, false
	}
	e.working, e.cancelled = e.Epoch, false
	n.running[manifest] = e
	return n.fence(e), true
}

// Held is how many leases the node holds, as far as it knows.
func (n *Node) Held() int { return len(n.mine) }

// Ended tells that the node's session is over: nothing is to be expected of it any more.
func (n *Node) Ended() bool { return n.stop.ended }

func (n *Node) do(a Action) { n.actions = append(n.actions, a) }

func (n *Node) fence(e *entry) Fence { return Fence{Manifest: e.name, Holder: n.me, Epoch: e.Epoch} }

// find returns nil for a manifest that nobody has told of.
func (n *Node) find(name string) *entry {
	number, ok := n.shared.numbers[name]
	if !ok || int(number) >= len(n.entries) {
		return nil
	}
	return n.entries[number]
}

func (n *Node) entry(name string) *entry {
	number := int(n.shared.number(name))
	if missing := number + 1 - len(n.entries); missing > 0 {
		n.entries = append(n.entries, make([]*entry, missing)...)
	}
	if n.entries[number] == nil {
		n.entries[number] = n.newEntry(number)
	}
	return n.entries[number]
}

func (n *Node) newEntry(number int) *entry {
	if len(n.unused) == 0 {
		n.unused = make([]entry, entriesAtOnce)
	}
	e := &n.unused[0]
	n.unused = n.unused[1:]
	e.number, e.name = int32(number), n.shared.names[number]
	e.print = printOf(e.name)
	return e
}

func (n *Node) tick() {
	n.renew()
	if n.proof.MustStop(n.now) {
		n.cancelAll(BecauseUnproven)
	}
	for _, e := range inOrder(n.releasing) {
		if !e.waiting || n.now-e.asked >= answerWithin {
			n.release(e, e.giving)
		}
	}
	if n.stop.on {
		n.endIfLeft()
		return
	}
	n.takeAll()
	n.share()
}

func (n *Node) manifest(m Manifest) {
	e := n.entry(m.Name)
	if e.live == !m.Gone {
		return
	}
	n.out(e)
	e.live, e.reason = !m.Gone, 0
	n.in(e)
	switch {
	case e.live:
		n.takeSoon(e)
	case e.working != 0:
		n.cancel(e, BecauseGone)
	case e.Holder == n.me:
		n.release(e, BecauseGone)
	}
}

// inOrder are the entries in order of their names, so that the same events always lead to the same actions.
func inOrder(entries map[string]*entry) []*entry {
	if len(entries) == 0 {
		return nil
	}
	sorted := make([]*entry, 0, len(entries))
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		sorted = append(sorted, entries[name])
	}
	return sorted
}
