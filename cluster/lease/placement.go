package lease

import "math/bits"

// Score is how well a node suits a manifest, by rendezvous hashing: each manifest goes to the node that scores highest, so a node that
// comes or goes moves only what is its own. Boots do not count: a node that comes back gets back what it had.
func Score(node, manifest string) uint64 {
	return score(printOf(node), printOf(manifest))
}

// score is Score of the prints of the two.
func score(node, manifest uint64) uint64 { return mix(node - bits.RotateLeft64(manifest, 32)) }

// printOf is a number that stands for a name: its FNV-1a hash, spread.
func printOf(name string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return mix(h)
}

// mix spreads what FNV leaves alike in names that differ at their ends (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// seat is a node that may hold leases, and how many it holds.
type seat struct {
	id   SessionID
	held int
}

// share is what each node is to hold when all is even: between low and high.
type share struct{ low, high int }

func shareOf(manifests, nodes int) share {
	if nodes == 0 {
		return share{}
	}
	return share{low: manifests / nodes, high: (manifests + nodes - 1) / nodes}
}

// class puts those first who hold less than the least share, and those last who have their fair share.
func (s share) class(held int) int {
	switch {
	case held < s.low:
		return 0
	case held < s.high:
		return 1
	}
	return 2
}
