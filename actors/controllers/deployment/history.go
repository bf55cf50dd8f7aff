package deployment

import (
	"cmp"
	"slices"

	"k8s.io/kubernetes/pkg/controller/deployment/util"
)

// trimHistory plans to delete the lowest revisions of the empty old sets beyond revisionHistoryLimit.
func (p *plan) trimHistory() {
	if !util.HasRevisionHistoryLimit(p.deployment) {
		return
	}
	var kept []*replicaSet
	for _, set := range p.old {
		if set.DeletionTimestamp == nil {
			kept = append(kept, set)
		}
	}
	surplus := len(kept) - int(*p.deployment.Spec.RevisionHistoryLimit)
	if surplus <= 0 {
		return
	}
	slices.SortStableFunc(kept, lowestRevisionFirst)
	for _, set := range kept[:surplus] {
		if set.empty() {
			p.remove = append(p.remove, set)
		}
	}
}

// empty tells whether a set has no pods and its status is up to date about it.
func (s *replicaSet) empty() bool {
	return s.Status.Replicas == 0 && s.size() == 0 && s.sizeBefore() == 0 && s.Generation <= s.Status.ObservedGeneration
}

func lowestRevisionFirst(a, b *replicaSet) int {
	first, errFirst := util.Revision(a.ReplicaSet)
	second, errSecond := util.Revision(b.ReplicaSet)
	if errFirst != nil || errSecond != nil || first == second {
		return oldestFirst(a, b)
	}
	return cmp.Compare(first, second)
}
