package lease

// Score is how well a node suits a manifest, by rendezvous hashing: each manifest goes to the node that scores highest, so a node that
// comes or goes moves only what is its own. Boots do not count: a node that comes back gets back what it had.
func Score(node, manifest string) uint64 {
	return mix(fnv(scoreSeed(node), manifest))
}

// scoreSeed is where all scores of a node begin.
func scoreSeed(node string) uint64 {
	const separator = 0xff
	return (fnv(fnvOffset, node) ^ separator) * fnvPrime
}

// printOf is a number that stands for a name.
func printOf(name string) uint64 { return mix(fnv(fnvOffset, name)) }

const fnvOffset, fnvPrime = 14695981039346656037, 1099511628211

// fnv goes on with an FNV-1a hash.
func fnv(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return h
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
