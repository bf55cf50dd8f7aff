package deployment

import (
	"cmp"
	"slices"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/deployment/util"
)

// scalingEvent tells whether the Deployment's size changed since its active sets were sized: then they are scaled in proportion
// first and rolling goes on afterwards.
//
// Several active sets of a Deployment that recreates are no scaling: recreating empties all but one.
func (p *plan) scalingEvent() bool {
	active := p.active()
	if len(active) > 1 && !util.IsRollingUpdate(p.deployment) {
		return false
	}
	for _, set := range active {
		desired, ok := util.GetDesiredReplicasAnnotation(klog.Background(), set.ReplicaSet)
		if ok && desired != p.replicas() {
			return true
		}
	}
	return false
}

// scale sizes the sets for the Deployment's size without moving the rollout on.
func (p *plan) scale() {
	active := p.active()
	switch {
	case len(active) <= 1:
		if only := p.onlyOrNewest(active); only != nil {
			p.resize(only, p.replicas())
		}
	case p.current != nil && util.IsSaturated(p.deployment, p.current.ReplicaSet):
		for _, set := range p.old {
			if set.size() > 0 {
				p.resize(set, 0)
			}
		}
	case util.IsRollingUpdate(p.deployment):
		p.scaleInProportion(active)
	}
}

// onlyOrNewest is the one active set, else the current one, else the youngest old one.
func (p *plan) onlyOrNewest(active []*replicaSet) *replicaSet {
	switch {
	case len(active) == 1:
		return active[0]
	case p.current != nil:
		return p.current
	case len(p.old) > 0:
		return p.old[len(p.old)-1]
	}
	return nil
}

// scaleInProportion shares out what is to be added or taken by the sets' sizes; what rounding leaves goes to the largest.
func (p *plan) scaleInProportion(active []*replicaSet) {
	allowed := int32(0)
	if p.replicas() > 0 {
		allowed = p.replicas() + p.maxSurge()
	}
	change := allowed - p.total()
	slices.SortStableFunc(active, largestFirst(change > 0))
	var shared int32
	sizes := make([]int32, len(active))
	for i, set := range active {
		part := util.GetReplicaSetProportion(klog.Background(), set.ReplicaSet, *p.deployment, change, shared)
		sizes[i] = set.size() + part
		shared += part
	}
	sizes[0] = max(0, sizes[0]+change-shared)
	for i, set := range active {
		p.resize(set, sizes[i])
	}
}

// largestFirst orders by size; among equals the younger comes first when growing, the older when shrinking.
func largestFirst(growing bool) func(a, b *replicaSet) int {
	return func(a, b *replicaSet) int {
		if n := cmp.Compare(b.size(), a.size()); n != 0 {
			return n
		}
		if growing {
			return oldestFirst(b, a)
		}
		return oldestFirst(a, b)
	}
}

// active are the sets that have or shall have pods.
func (p *plan) active() []*replicaSet {
	var active []*replicaSet
	for _, set := range p.sets {
		if set.size() > 0 {
			active = append(active, set)
		}
	}
	return active
}
