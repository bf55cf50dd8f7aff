package placement

// Weights of the scores, each of which runs from 0 to full. They follow upstream's defaults, so that a cluster spreads as people expect.
const (
	full               = 100
	weightAllocation   = 1
	weightOwner        = 2
	weightNodeAffinity = 2
	weightTaint        = 3
	weightPodAffinity  = 2
	weightSpread       = 2
)

// candidate is a node that passed the filters, with the raw measures its score is made of.
type candidate struct {
	node                              *node
	free                              int64 // 0..full, share of CPU and memory left
	siblings                          int   // pods of the same owner
	affinity, taints, liking, crowded int64 // preferred node affinity, PreferNoSchedule taints, preferred pod affinity, soft spread
}

func (q *question) measure(n *node, soft []census) candidate {
	c := candidate{node: n, free: freeShare(n, q.Demand), taints: softUntolerated(q.pod, n.soft)}
	if q.owner != "" {
		c.siblings = n.owners[q.owner]
	}
	if q.preferred != nil {
		c.affinity = q.preferred.Score(n.object)
	}
	if q.relations != nil {
		c.liking = q.relations.liking(q.Demand, n)
	}
	for i := range soft {
		c.crowded += int64(soft[i].pods[n.object.Labels[soft[i].key]])
	}
	return c
}

// freeShare is the mean share of CPU and memory that would be left with the pod on the node.
func freeShare(n *node, d *Demand) int64 {
	return (share(n.allocatable.MilliCPU, n.scoredCPU, d.scoreCPU) + share(n.allocatable.Memory, n.scoredMemory, d.scoreMemory)) / 2
}

func share(have, used, want int64) int64 {
	left := have - used - want
	if have <= 0 || left <= 0 {
		return 0
	}
	return int64(float64(left) / float64(have) * full)
}

// best scores the candidates against each other and picks one; there is at least one.
func (q *question) best(candidates []candidate) *node {
	siblings, affinity := span{}, span{}
	taints, liking, crowded := span{}, span{}, span{}
	for i := range candidates {
		c := &candidates[i]
		siblings.take(int64(c.siblings), i)
		affinity.take(c.affinity, i)
		taints.take(c.taints, i)
		liking.take(c.liking, i)
		crowded.take(c.crowded, i)
	}
	var winner *node
	var top int64
	var tie uint64
	for i := range candidates {
		c := &candidates[i]
		score := weightAllocation*c.free + weightOwner*siblings.lower(int64(c.siblings)) + weightNodeAffinity*affinity.higher(c.affinity) +
			weightTaint*taints.lower(c.taints) + weightPodAffinity*liking.higher(c.liking) + weightSpread*crowded.lower(c.crowded)
		if winner != nil && score < top {
			continue
		}
		if winner != nil && score == top {
			if other := q.tieBreak(c.node); other > tie {
				winner, tie = c.node, other
			}
			continue
		}
		winner, top, tie = c.node, score, q.tieBreak(c.node)
	}
	return winner
}

// tieBreak tells equal nodes apart, differently for each pod.
func (d *Demand) tieBreak(n *node) uint64 { return scatter(d.seed ^ n.seed) }

// seedOf is the FNV-1a hash of a name.
func seedOf(name string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * prime
	}
	return h
}

// scatter spreads every bit of x over the result, so that seeds that differ little give results that differ much.
func scatter(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// span is the range a measure takes over the candidates.
type span struct{ low, high int64 }

func (s *span) take(value int64, index int) {
	if index == 0 {
		s.low, s.high = value, value
		return
	}
	s.low, s.high = min(s.low, value), max(s.high, value)
}

// higher scales so that the highest value gets full; all get nothing when they are equal.
func (s *span) higher(value int64) int64 {
	if s.high == s.low {
		return 0
	}
	return full * (value - s.low) / (s.high - s.low)
}

// lower scales so that the lowest value gets full; all get nothing when they are equal.
func (s *span) lower(value int64) int64 {
	if s.high == s.low {
		return 0
	}
	return full * (s.high - value) / (s.high - s.low)
}
