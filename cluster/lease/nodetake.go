package lease

// able tells whether the node may take leases.
func (n *Node) able() bool { return !n.stop.on && n.proof.MayStart(n.now) }

// takeAll looks at every lease whose holder is gone.
func (n *Node) takeAll() {
	if n.crowd.takeables() == 0 {
		return
	}
	for _, h := range n.crowd.gone {
		h.marked = true
		for _, e := range h.held {
			n.mark(e, h.why)
		}
	}
	if !n.able() {
		return
	}
	plan := n.plan()
	for i := range plan {
		n.take(n.entries[plan[i].number], plan[i].rank(n.me))
	}
}

// takeSoon looks at a lease of which something has changed. It looks at all that are takeable, because whose turn it is depends on who
// is to take the others; where those are many, the next tick does.
func (n *Node) takeSoon(e *entry) {
	if e.live && e.by.why != 0 && n.crowd.takeables() <= manyTakeable {
		n.takeAll()
	}
}

func (n *Node) mark(e *entry, why Reason) {
	if e.reason == 0 {
		e.since = n.now
	}
	e.reason = why
}

// take takes a lease if it is this node's turn: the one it suits best at once, the others later, should that one not do it.
func (n *Node) take(e *entry, rank int) {
	wait := min(Instant(rank)*stepAside, lastStep)
	if e.gave {
		wait = lastStep + stepAside/2
	}
	if n.now-e.since < wait || e.waiting && n.now-e.asked < answerWithin {
		return
	}
	n.append(e, e.Record.Taken(n.me), e.reason)
}
