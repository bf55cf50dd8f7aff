package lease

// Shared is what the nodes of one process have in common, where there are many of them, as in simulations: the numbers of the manifests,
// and plans, because nodes that see the same make the same plan. Nothing that a node knows is in it: each one may see something else. Nodes
// that share it must not be stepped in parallel. Make it with Share.
type Shared struct {
	numbers map[string]int32
	names   []string
	plans   plans
}

// Share makes what many nodes can share.
func Share() *Shared { return &Shared{plans: plans{on: true, known: map[planKey]plan{}}} }

// number is that of a manifest; they are given in the order in which manifests are told of.
func (s *Shared) number(name string) int32 {
	number, ok := s.numbers[name]
	if !ok {
		if s.numbers == nil {
			s.numbers = map[string]int32{}
		}
		number = int32(len(s.names))
		s.numbers[name], s.names = number, append(s.names, name)
	}
	return number
}

// plans are the last plans that were made.
type plans struct {
	on    bool
	known map[planKey]plan
	order []planKey
}

// planKey tells one view from another: who holds what, whose leases may be taken, and who may take them.
type planKey struct{ crowd, gone, seats uint64 }

// plansKept is how many plans are remembered: as many as changes that not all nodes have seen.
const plansKept = 4096

func (p *plans) get(key planKey, make func() plan) plan {
	if known, ok := p.known[key]; ok {
		return known
	}
	if len(p.order) == plansKept {
		delete(p.known, p.order[0])
		p.order = p.order[1:]
	}
	made := make()
	p.known[key], p.order = made, append(p.order, key)
	return made
}
