package lease

import "slices"

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
