package lease

import (
	"cmp"
	"slices"
)

// plan says who is expected to take which of the leases that may be taken. All nodes that see the same make the same plan.
type plan []turns

// turns are the nodes whose turn it is to take a manifest, first the one that is expected to do it.
type turns struct {
	number int32
	nodes  [places]SessionID
}

// rank is how many are to take the manifest before the node, at most places.
func (t *turns) rank(me SessionID) int {
	for i := range t.nodes {
		if t.nodes[i] == me {
			return i
		}
	}
	return places
}

// plan works out who takes what of all that may be taken.
func (n *Node) plan() plan {
	seats, fair := n.seats()
	if !n.shared.plans.on {
		return n.crowd.plan(seats, fair)
	}
	key := planKey{n.crowd.print, 0, n.crowd.seatsPrint}
	for _, h := range n.crowd.gone {
		key.gone += mix(h.print)
	}
	return n.shared.plans.get(key, func() plan { return n.crowd.plan(seats, fair) })
}

// plan goes through the leases in order of their names. Each is counted for who is expected to take it.
func (c *crowd) plan(seats []*holder, fair share) plan {
	var all []*entry
	for _, h := range c.gone {
		all = append(all, h.held...)
	}
	slices.SortFunc(all, func(a, b *entry) int { return cmp.Compare(a.name, b.name) })
	chairs := make([]chair, len(seats))
	for i, h := range seats {
		chairs[i] = chair{h, h.node, len(h.held), fair.class(len(h.held))}
	}
	made := make(plan, len(all))
	for i, e := range all {
		made[i] = fair.turns(e, chairs)
	}
	return made
}

// chair is a seat of a plan: what its node holds and what is meant for it.
type chair struct {
	*holder
	node         uint64
	count, class int
}

// turns finds those that a manifest suits best, and counts it for the first.
func (s share) turns(e *entry, chairs []chair) turns {
	var best [places]*chair
	var scores [places]uint64
	for i := range chairs {
		c, last := &chairs[i], best[places-1]
		if last != nil && c.class > last.class {
			continue
		}
		score, at := score(c.node, e.print), places
		if last != nil && c.class == last.class && score < scores[places-1] {
			continue
		}
		for at > 0 && (best[at-1] == nil || before(c, score, best[at-1], scores[at-1])) {
			at--
		}
		if at == places {
			continue
		}
		copy(best[at+1:], best[at:])
		copy(scores[at+1:], scores[at:])
		best[at], scores[at] = c, score
	}
	t := turns{number: e.number}
	for i, c := range best {
		if c != nil {
			t.nodes[i] = c.id
		}
	}
	if best[0] != nil {
		best[0].count++
		best[0].class = s.class(best[0].count)
	}
	return t
}

// before tells whether a is to get a manifest rather than b.
func before(a *chair, scoreA uint64, b *chair, scoreB uint64) bool {
	if a.class != b.class {
		return a.class < b.class
	}
	if scoreA != scoreB {
		return scoreA > scoreB
	}
	return a.id.Compare(b.id) < 0
}
