package services

import (
	"cmp"
	"net/netip"
	"slices"
)

// sharedChange is what appears or goes of the parts that fronts share.
type sharedChange struct {
	addChains, removeChains     []Pick
	addHairpins, removeHairpins Elements
}

// count moves the references from one state of some fronts to the next.
func (p *Planner) count(before, after map[Front]Route) sharedChange {
	picks, addrs := references(after, 1, map[Pick]int{}, map[netip.Addr]int{})
	picks, addrs = references(before, -1, picks, addrs)
	c := sharedChange{addHairpins: Elements{}, removeHairpins: Elements{}}
	c.addChains, c.removeChains = recount(p.picks, picks)
	add, remove := recount(p.hairpins, addrs)
	for _, a := range add {
		c.addHairpins[hairpin(a)] = ""
	}
	for _, a := range remove {
		c.removeHairpins[hairpin(a)] = ""
	}
	slices.SortFunc(c.addChains, comparePicks)
	slices.SortFunc(c.removeChains, comparePicks)
	return c
}

// references adds by for each use of a chain and of a backend's address.
func references(routes map[Front]Route, by int, picks map[Pick]int, addrs map[netip.Addr]int) (map[Pick]int, map[netip.Addr]int) {
	for f, r := range routes {
		if len(r.Backends) > 0 {
			picks[pickOf(f, r)] += by
		}
		for _, b := range r.Backends {
			addrs[b.Addr()] += by
		}
	}
	return picks, addrs
}

// recount applies changes of counts and tells what is used for the first time and what no more.
func recount[K comparable](counts, by map[K]int) (first, last []K) {
	for k, n := range by {
		was := counts[k]
		now := was + n
		switch {
		case now == 0:
			delete(counts, k)
		default:
			counts[k] = now
		}
		if was == 0 && now > 0 {
			first = append(first, k)
		}
		if was > 0 && now == 0 {
			last = append(last, k)
		}
	}
	return first, last
}

func comparePicks(a, b Pick) int { return cmp.Compare(a.Chain(), b.Chain()) }
