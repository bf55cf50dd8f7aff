package lease

import (
	"cmp"
	"slices"
)

// surplus is how many leases a node is to give away so that nobody holds more than the fair share, and nobody less than the least one
// while others have more. Free leases go to those who have less anyway. All nodes that see the same agree on who gives.
func (s share) surplus(seats []seat, free int, me SessionID) int {
	missing, mine := -free, 0
	for _, n := range seats {
		missing += max(s.low-n.held, 0) - max(n.held-s.high, 0)
		if n.id == me {
			mine = max(n.held-s.high, 0)
		}
	}
	for _, n := range seats {
		if missing <= 0 || min(n.held, s.high) <= s.low {
			continue
		}
		missing--
		if n.id == me {
			return mine + 1
		}
	}
	return mine
}

// batch is how many of the leases held may be given away at once.
func batch(held int) int { return max(batchLeast, held/batchPart) }

// giveaways are n of the entries, those first that suit the node of a print least.
func giveaways(node uint64, entries []*entry, n int) []*entry {
	slices.SortFunc(entries, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(score(node, a.print), score(node, b.print)), cmp.Compare(a.name, b.name))
	})
	return entries[:min(n, len(entries))]
}
