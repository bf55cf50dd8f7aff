package deployment

// recreate empties all old sets and gives the current one its size only when no old pod may run any more.
func (p *plan) recreate() {
	waiting := p.observed.oldPods
	for _, set := range p.old {
		if set.size() > 0 {
			p.resize(set, 0)
		}
		waiting = waiting || set.sizeBefore() > 0 || set.Status.Replicas > 0
	}
	if waiting {
		return
	}
	if p.current == nil {
		p.create()
	}
	if p.current.size() != p.replicas() {
		p.resize(p.current, p.replicas())
	}
}
