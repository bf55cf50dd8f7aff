package lease

// Score is how well a node suits a manifest, by rendezvous hashing: each manifest goes to the node that scores highest, so a node that
// comes or goes moves only what is its own. Boots do not count: a node that comes back gets back what it had.
func Score(node, manifest string) uint64 {
	const offset, separator = 14695981039346656037, 0xff
	return mix(fnv((fnv(offset, node)^separator)*fnvPrime, manifest))
}

const fnvPrime = 1099511628211

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

// before tells whether a is to get the manifest rather than b.
func (s share) before(manifest string, a, b seat) bool {
	if x, y := s.class(a.held), s.class(b.held); x != y {
		return x < y
	}
	if x, y := Score(a.id.Node, manifest), Score(b.id.Node, manifest); x != y {
		return x > y
	}
	return a.id.Compare(b.id) < 0
}

// rank is how many others are to get the manifest rather than the node, and the seat of the first of all.
func (s share) rank(manifest string, seats []seat, me SessionID) (rank, first int) {
	mine := -1
	for i := range seats {
		if s.before(manifest, seats[i], seats[first]) {
			first = i
		}
		if seats[i].id == me {
			mine = i
		}
	}
	if mine < 0 {
		return len(seats), first
	}
	for i := range seats {
		if i != mine && s.before(manifest, seats[i], seats[mine]) {
			rank++
		}
	}
	return rank, first
}
