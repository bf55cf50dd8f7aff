package lease

// balance is when leases were and may be given away.
type balance struct {
	// among are the nodes that may hold leases, since when they have been the same.
	among []SessionID
	since Instant
	// next is when leases may be given away again, shyUntil how long it is put off because that did not work.
	next, shyUntil Instant
}

// share gives away what is above this node's share, in small batches, and nothing in which work runs.
func (n *Node) share() {
	if !n.able() {
		return
	}
	seated, fair := n.seats()
	b := &n.balance
	if n.now-b.since < settle || n.now < b.next || n.now < b.shyUntil {
		return
	}
	b.next = n.now + batchEvery
	if len(n.mine)-len(n.releasing) <= fair.low {
		return
	}
	seats := counted(seated)
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
	for _, e := range giveaways(printOf(n.me.Node), n.idle(), min(surplus, batch(len(n.mine)))) {
		n.release(e, BecauseShare)
	}
}

// unheld counts the manifests that none of the seats holds.
func (n *Node) unheld(seats []seat) int {
	free := len(n.releasing) + n.crowd.manifests
	for _, s := range seats {
		free -= s.held
	}
	return free
}

// idle are the entries of the leases held in which no work runs.
func (n *Node) idle() []*entry {
	var idle []*entry
	for _, e := range n.mine {
		if e.live && e.working == 0 && e.giving == 0 {
			idle = append(idle, e)
		}
	}
	return idle
}
