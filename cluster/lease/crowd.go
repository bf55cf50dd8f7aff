package lease

import "slices"

// crowd is who holds what of the live manifests, and who may hold more. It is kept up to date by each event, so that nothing has to be
// counted.
type crowd struct {
	// manifests is how many live ones there are, print tells one distribution of them from another.
	manifests int
	print     uint64
	holders   map[SessionID]*holder
	// nobody holds the free leases.
	nobody *holder
	// gone are those whose leases may be taken.
	gone []*holder
	// seats are the nodes that may hold leases, in order; nil when that is to be found out anew, as it is when self changes: whether this
	// node is one of them.
	seats      []*holder
	self       bool
	seatsPrint uint64
}

// holder is a session that holds leases or may get some.
type holder struct {
	id SessionID
	// node is the print of its node, print its own.
	node, print uint64
	held        []*entry
	// why its leases may be taken, 0 when they may not; marked when since when is noted in them.
	why    Reason
	marked bool
}

func newCrowd() crowd { return crowd{holders: map[SessionID]*holder{}} }

// holder finds what is known of a session.
func (n *Node) holder(id SessionID) *holder {
	if id == (SessionID{}) && n.crowd.nobody != nil {
		return n.crowd.nobody
	}
	h := n.crowd.holders[id]
	if h == nil {
		h = &holder{id: id, node: printOf(id.Node), print: printOf(id.Node + "/" + id.Boot)}
		n.crowd.holders[id] = h
		n.judge(h)
		if h.why == BecauseFree {
			n.crowd.nobody = h
		}
	}
	return h
}

// judge finds out whether the leases of a holder may be taken.
func (n *Node) judge(h *holder) {
	was := h.why
	h.why = n.takeable(h.id)
	switch {
	case was == 0 && h.why != 0:
		n.crowd.gone = append(n.crowd.gone, h)
	case was != 0 && h.why == 0:
		n.crowd.gone = slices.DeleteFunc(n.crowd.gone, func(o *holder) bool { return o == h })
	}
}

// judgeAll judges everybody.
func (n *Node) judgeAll() {
	for _, h := range n.crowd.holders {
		n.judge(h)
	}
}

// forget drops a holder of which nothing is left.
func (n *Node) forget(h *holder) {
	delete(n.crowd.holders, h.id)
	n.crowd.gone = slices.DeleteFunc(n.crowd.gone, func(o *holder) bool { return o == h })
}

// out takes an entry out of the crowd, before it becomes another; in puts it back.
func (n *Node) out(e *entry) {
	if !e.live {
		return
	}
	c, h := &n.crowd, e.by
	last := len(h.held) - 1
	h.held[e.at] = h.held[last]
	h.held[e.at].at = e.at
	h.held[last], e.by = nil, nil
	h.held = h.held[:last]
	c.manifests--
	c.print -= mix(e.print ^ h.print)
	if _, live := n.live[h.id]; last == 0 && h.why != 0 && h.why != BecauseFree && !live {
		n.forget(h)
	}
}

func (n *Node) in(e *entry) {
	if !e.live {
		return
	}
	c, h := &n.crowd, n.holder(e.Holder)
	e.by, e.at = h, int32(len(h.held))
	h.held = append(h.held, e)
	c.manifests++
	c.print += mix(e.print ^ h.print)
}

// held are the live manifests a session holds.
func (c *crowd) held(id SessionID) []*entry {
	if h := c.holders[id]; h != nil {
		return h.held
	}
	return nil
}

// takeables counts the leases that may be taken.
func (c *crowd) takeables() (many int) {
	for _, h := range c.gone {
		many += len(h.held)
	}
	return many
}

// spare forgets since when the leases of a holder have been takeable.
func (h *holder) spare() {
	if !h.marked {
		return
	}
	h.marked = false
	for _, e := range h.held {
		e.reason = 0
	}
}

// seats are the nodes that may hold leases, and what is fair.
func (n *Node) seats() ([]*holder, share) {
	c := &n.crowd
	if self := n.able(); c.seats == nil || c.self != self {
		c.self, c.seats = self, n.seated(self)
		c.seatsPrint = 0
		for _, h := range c.seats {
			c.seatsPrint += mix(h.print)
		}
	}
	return c.seats, shareOf(c.manifests, len(c.seats))
}

// seated finds the nodes that may hold leases, and notes when they have become others.
func (n *Node) seated(self bool) []*holder {
	ids := n.candidates(self)
	if !slices.Equal(ids, n.balance.among) {
		n.balance.among, n.balance.since = ids, n.now
	}
	seats := make([]*holder, len(ids))
	for i, id := range ids {
		seats[i] = n.holder(id)
	}
	return seats
}

// counted are the seats as they count for what is fair.
func counted(seats []*holder) []seat {
	all := make([]seat, len(seats))
	for i, h := range seats {
		all[i] = seat{id: h.id, held: len(h.held)}
	}
	return all
}
