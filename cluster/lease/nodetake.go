package lease

import "slices"

// balance is when leases were and may be given away.
type balance struct {
	// among are the nodes that may hold leases, since when they have been the same.
	among []SessionID
	since Instant
	// next is when leases may be given away again, shyUntil how long it is put off because that did not work.
	next, shyUntil Instant
}

// able tells whether the node may take leases.
func (n *Node) able() bool { return !n.stop.on && n.proof.MayStart(n.now) }

// seats are the nodes that may hold leases and what they hold, and what is fair.
func (n *Node) seats() ([]seat, share) {
	manifests := 0
	for _, held := range n.by {
		manifests += len(held)
	}
	ids := n.candidates(n.able())
	if !slices.Equal(ids, n.balance.among) {
		n.balance.among, n.balance.since = ids, n.now
	}
	seats := make([]seat, len(ids))
	for i, id := range ids {
		seats[i] = seat{id: id, held: len(n.by[id])}
	}
	return seats, shareOf(manifests, len(ids))
}

// takeAll looks at every lease whose holder is gone.
func (n *Node) takeAll() {
	gone := map[string]*entry{}
	for id, held := range n.by {
		if why := n.takeable(id); why != 0 {
			for name, e := range held {
				n.mark(e, why)
				gone[name] = e
			}
		}
	}
	if len(gone) == 0 || !n.able() {
		return
	}
	seats, fair := n.seats()
	for _, e := range inOrder(gone) {
		n.take(e, seats, fair)
	}
}

// takeSoon looks at a lease of which something has changed. It looks at all that are takeable, because whose turn it is depends on who
// is to take the others; where those are many, the next tick does.
func (n *Node) takeSoon(e *entry) {
	if !e.live || n.takeable(e.Holder) == 0 {
		return
	}
	many := 0
	for id, held := range n.by {
		if n.takeable(id) != 0 {
			many += len(held)
		}
	}
	if many <= manyTakeable {
		n.takeAll()
	}
}

func (n *Node) mark(e *entry, why Reason) {
	if e.reason == 0 {
		e.since = n.now
	}
	e.reason = why
}

// take takes a lease if it is this node's turn: the one it suits best at once, the others later, should that one not do it. In seats
// it is counted for who is expected to take it, so that all nodes agree on who takes which of many.
func (n *Node) take(e *entry, seats []seat, fair share) {
	rank, first := fair.rank(e.name, seats, n.me)
	seats[first].held++
	wait := min(Instant(rank)*stepAside, lastStep)
	if e.gave {
		wait = lastStep + stepAside/2
	}
	if n.now-e.since < wait || e.waiting && n.now-e.asked < answerWithin {
		return
	}
	n.append(e, e.Record.Taken(n.me), e.reason)
}

// share gives away what is above this node's share, in small batches, and nothing in which work runs.
func (n *Node) share() {
	if !n.able() {
		return
	}
	seats, fair := n.seats()
	b := &n.balance
	if n.now-b.since < settle || n.now < b.next || n.now < b.shyUntil {
		return
	}
	b.next = n.now + batchEvery
	free := n.unheld(seats)
	for i := range seats {
		if seats[i].id == n.me {
			seats[i].held -= len(n.releasing)
		}
	}
	surplus := fair.surplus(seats, free, n.me)
	if surplus <= 0 {
		return
	}
	for _, name := range giveaways(n.me.Node, n.idle(), min(surplus, batch(len(n.mine)))) {
		n.release(n.entries[name], BecauseShare)
	}
}

// unheld counts the manifests that none of the seats holds.
func (n *Node) unheld(seats []seat) int {
	free := len(n.releasing)
	for _, held := range n.by {
		free += len(held)
	}
	for _, s := range seats {
		free -= s.held
	}
	return free
}

// idle are the manifests held in which no work runs.
func (n *Node) idle() []string {
	var idle []string
	for name, e := range n.mine {
		if e.live && e.working == 0 && e.giving == 0 {
			idle = append(idle, name)
		}
	}
	return idle
}
