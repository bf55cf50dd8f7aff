package placement

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// spread is one compiled topology spread constraint.
type spread struct {
	key        string
	maxSkew    int
	minDomains int
	selector   labels.Selector
	// self is 1 when the pod counts itself.
	self int
	// byAffinity and byTaints say whether nodes that the pod could not use anyway are left out of the count.
	byAffinity, byTaints bool
}

func (d *Demand) compileSpread(pod *v1.Pod) {
	for i := range pod.Spec.TopologySpreadConstraints {
		constraint := &pod.Spec.TopologySpreadConstraints[i]
		compiled := compileSpreadOne(pod, constraint)
		if constraint.WhenUnsatisfiable == v1.DoNotSchedule {
			d.hardSpread = append(d.hardSpread, compiled)
		} else {
			d.softSpread = append(d.softSpread, compiled)
		}
	}
}

func compileSpreadOne(pod *v1.Pod, t *v1.TopologySpreadConstraint) spread {
	s := spread{key: t.TopologyKey, maxSkew: int(t.MaxSkew), minDomains: 1, byAffinity: true}
	if t.MinDomains != nil {
		s.minDomains = int(*t.MinDomains)
	}
	if t.NodeAffinityPolicy != nil {
		s.byAffinity = *t.NodeAffinityPolicy == v1.NodeInclusionPolicyHonor
	}
	if t.NodeTaintsPolicy != nil {
		s.byTaints = *t.NodeTaintsPolicy == v1.NodeInclusionPolicyHonor
	}
	s.selector = withLabelKeys(selectorOf(t.LabelSelector), pod, t.LabelSelector, t.MatchLabelKeys)
	if s.selector.Matches(labels.Set(pod.Labels)) {
		s.self = 1
	}
	return s
}

// withLabelKeys narrows the selector to pods that share the pod's values of the keys.
func withLabelKeys(s labels.Selector, pod *v1.Pod, from *metav1.LabelSelector, keys []string) labels.Selector {
	if from == nil {
		return s
	}
	for _, key := range keys {
		value, ok := pod.Labels[key]
		if !ok {
			continue
		}
		if r, err := labels.NewRequirement(key, selection.In, []string{value}); err == nil {
			s = s.Add(*r)
		}
	}
	return s
}

// census is what one constraint counts in the present ledger: matching pods by the label's value, over the nodes that count.
type census struct {
	*spread
	pods   map[string]int
	lowest int
}

func (c *Cluster) takeCensus(d *Demand, constraints []spread) []census {
	if len(constraints) == 0 {
		return nil
	}
	taken := make([]census, len(constraints))
	for i := range constraints {
		taken[i] = census{spread: &constraints[i], pods: map[string]int{}}
	}
	for _, n := range c.visiting() {
		if carriesAll(n, constraints) {
			countNode(d, n, taken)
		}
	}
	for i := range taken {
		taken[i].settle()
	}
	return taken
}

// carriesAll: a node without one of the labels counts for none of the constraints.
func carriesAll(n *node, constraints []spread) bool {
	for i := range constraints {
		if !hasLabel(n.object, constraints[i].key) {
			return false
		}
	}
	return true
}

func countNode(d *Demand, n *node, taken []census) {
	for i := range taken {
		t := &taken[i]
		if t.byAffinity && !d.selects(n) || t.byTaints && !toleratesAll(d.pod, n.hard) {
			continue
		}
		matching := 0
		for _, o := range n.occupants {
			if o.pod.Namespace == d.pod.Namespace && o.pod.DeletionTimestamp == nil && t.selector.Matches(labels.Set(o.pod.Labels)) {
				matching++
			}
		}
		t.pods[n.object.Labels[t.key]] += matching
	}
}

// settle works out the lowest count; with fewer domains than asked for it is nought, so that new domains are waited for.
func (t *census) settle() {
	if len(t.pods) < t.minDomains {
		return
	}
	first := true
	for _, count := range t.pods {
		if first || count < t.lowest {
			t.lowest, first = count, false
		}
	}
}

// refuse gives the reason for which the constraint keeps the pod off the node, empty when it does not.
func (t *census) refuse(n *node) string {
	value, ok := n.object.Labels[t.key]
	if !ok {
		return reasonSpreadLabel
	}
	if t.pods[value]+t.self-t.lowest > t.maxSkew {
		return reasonSpread
	}
	return ""
}
