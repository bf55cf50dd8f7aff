package deployment

// roll grows the current set as far as maxSurge allows and shrinks old ones as far as maxUnavailable allows.
func (p *plan) roll() {
	if p.current == nil {
		p.create()
	}
	p.growCurrent()
	p.shrinkOld()
}

// growCurrent never lets the sum of all sizes pass replicas + maxSurge.
func (p *plan) growCurrent() {
	size := p.current.size()
	switch {
	case size > p.replicas():
		p.resize(p.current, p.replicas())
	case size < p.replicas():
		room := p.replicas() + p.maxSurge() - p.total()
		if room > 0 {
			p.resize(p.current, min(p.replicas(), size+room))
		}
	}
}

// shrinkOld takes pods from old sets, unhealthy ones first. What may go is what is there beyond the minimum, counting pods of the
// current set only once they are available.
func (p *plan) shrinkOld() {
	minimum := p.replicas() - p.maxUnavailable()
	waiting := p.current.size() - p.current.available()
	budget := p.total() - minimum - waiting
	budget -= p.dropUnhealthy(budget)
	p.dropAvailable(min(budget, p.availableNow()-minimum))
}

// dropUnhealthy takes pods that are not available anyway, at most budget of them, and tells how many it took.
func (p *plan) dropUnhealthy(budget int32) (taken int32) {
	for _, set := range p.old {
		n := min(budget-taken, set.size()-set.available())
		if n > 0 {
			p.resize(set, set.size()-n)
			taken += n
		}
	}
	return taken
}

func (p *plan) dropAvailable(budget int32) {
	for _, set := range p.old {
		n := min(budget, set.size())
		if n > 0 {
			p.resize(set, set.size()-n)
			budget -= n
		}
	}
}

// availableNow is how many pods of all sets can be relied on.
func (p *plan) availableNow() int32 {
	var n int32
	for _, set := range p.sets {
		n += set.available()
	}
	return n
}
