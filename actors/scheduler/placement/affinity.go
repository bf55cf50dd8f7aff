package placement

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// term is one compiled pod affinity term: which pods it means, and in which domain of nodes.
type term struct {
	key      string
	selector labels.Selector
	// names and byLabel say in which namespaces those pods live; byLabel is nil when the term does not select namespaces.
	names   []string
	byLabel labels.Selector
	spaces  Namespaces
}

type weightedTerm struct {
	term
	weight int64
}

func (d *Demand) compilePodAffinity(affinity *v1.Affinity, spaces Namespaces) {
	if affinity == nil {
		return
	}
	if a := affinity.PodAffinity; a != nil {
		d.attract = compileTerms(d.pod, a.RequiredDuringSchedulingIgnoredDuringExecution, spaces)
		d.preferAttract = compileWeighted(d.pod, a.PreferredDuringSchedulingIgnoredDuringExecution, spaces)
	}
	if a := affinity.PodAntiAffinity; a != nil {
		d.repel = compileTerms(d.pod, a.RequiredDuringSchedulingIgnoredDuringExecution, spaces)
		d.preferRepel = compileWeighted(d.pod, a.PreferredDuringSchedulingIgnoredDuringExecution, spaces)
	}
}

func compileTerms(pod *v1.Pod, list []v1.PodAffinityTerm, spaces Namespaces) []term {
	var terms []term
	for i := range list {
		terms = append(terms, compileTerm(pod, &list[i], spaces))
	}
	return terms
}

func compileWeighted(pod *v1.Pod, list []v1.WeightedPodAffinityTerm, spaces Namespaces) []weightedTerm {
	var terms []weightedTerm
	for i := range list {
		terms = append(terms, weightedTerm{compileTerm(pod, &list[i].PodAffinityTerm, spaces), int64(list[i].Weight)})
	}
	return terms
}

// compileTerm leaves matchLabelKeys alone: the API server has merged them into the selector when the pod was created.
func compileTerm(pod *v1.Pod, t *v1.PodAffinityTerm, spaces Namespaces) term {
	compiled := term{key: t.TopologyKey, selector: selectorOf(t.LabelSelector), names: t.Namespaces, spaces: spaces}
	if t.NamespaceSelector != nil {
		compiled.byLabel = selectorOf(t.NamespaceSelector)
	} else if len(t.Namespaces) == 0 {
		compiled.names = []string{pod.Namespace}
	}
	return compiled
}

func selectorOf(s *metav1.LabelSelector) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}

// covers tells whether the term looks at pods of the namespace.
func (t *term) covers(namespace string) bool {
	if slices.Contains(t.names, namespace) {
		return true
	}
	if t.byLabel == nil {
		return false
	}
	if t.byLabel.Empty() {
		return true
	}
	set := map[string]string{v1.LabelMetadataName: namespace}
	if t.spaces != nil {
		if known, ok := t.spaces(namespace); ok {
			set = known
		}
	}
	return t.byLabel.Matches(labels.Set(set))
}

// means tells whether the term means this pod.
func (t *term) means(pod *v1.Pod) bool {
	return t.covers(pod.Namespace) && t.selector.Matches(labels.Set(pod.Labels))
}

func meansAll(terms []term, pod *v1.Pod) bool {
	for i := range terms {
		if !terms[i].means(pod) {
			return false
		}
	}
	return true
}

// domain is one value of one topology label: the nodes that share it are one place as far as the term is concerned.
type domain struct{ key, value string }

// domainOf gives the node's domain under the key; ok is false when the node does not carry the label.
func domainOf(n *node, key string) (domain, bool) {
	if n == nil || n.object == nil {
		return domain{}, false
	}
	value, ok := n.object.Labels[key]
	return domain{key, value}, ok
}

// relations is what pod affinity means for one demand in the present ledger.
type relations struct {
	// attracted holds, by domain, how many pods all required attractions mean; alone is true when there is none anywhere and the pod
	// itself would be the first that they mean.
	attracted map[domain]int
	alone     bool
	// repelled are the domains the pod may not enter by its own wish, forbidden those that pods already placed keep it out of.
	repelled, forbidden map[domain]bool
	// liked sums the weights of preferred terms by domain.
	liked map[domain]int64
}

// relate looks at the placed pods once for all terms; nil when neither side has any.
func (c *Cluster) relate(d *Demand) *relations {
	preferring := len(d.preferAttract)+len(d.preferRepel) > 0
	if len(d.attract)+len(d.repel) == 0 && c.repelling == 0 && !preferring {
		return nil
	}
	r := &relations{attracted: map[domain]int{}, repelled: map[domain]bool{}, forbidden: map[domain]bool{}, liked: map[domain]int64{}}
	if c.repelling > 0 {
		r.forbid(c, d.pod)
	}
	if len(d.attract)+len(d.repel) > 0 || preferring {
		for _, space := range c.byNamespace {
			r.survey(c, d, space)
		}
	}
	r.alone = len(r.attracted) == 0 && meansAll(d.attract, d.pod)
	return r
}

// forbid collects the domains that placed pods with a required anti-affinity keep this pod out of.
func (r *relations) forbid(c *Cluster, pod *v1.Pod) {
	for _, n := range c.nodes {
		if n.withRepulsions == 0 {
			continue
		}
		for _, o := range n.occupants {
			for i := range o.repel {
				if t := &o.repel[i]; t.means(pod) {
					r.mark(r.forbidden, n, t.key)
				}
			}
		}
	}
}

func (r *relations) mark(set map[domain]bool, n *node, key string) {
	if where, ok := domainOf(n, key); ok {
		set[where] = true
	}
}

// survey counts the pods of one namespace that the demand's terms mean.
func (r *relations) survey(c *Cluster, d *Demand, space map[types.UID]*occupant) {
	for _, o := range space {
		n := c.nodes[o.node]
		if len(d.attract) > 0 && meansAll(d.attract, o.pod) {
			for i := range d.attract {
				if where, ok := domainOf(n, d.attract[i].key); ok {
					r.attracted[where]++
				}
			}
		}
		for i := range d.repel {
			if d.repel[i].means(o.pod) {
				r.mark(r.repelled, n, d.repel[i].key)
			}
		}
		r.like(d.preferAttract, n, o.pod, 1)
		r.like(d.preferRepel, n, o.pod, -1)
	}
}

func (r *relations) like(terms []weightedTerm, n *node, pod *v1.Pod, sign int64) {
	for i := range terms {
		if !terms[i].means(pod) {
			continue
		}
		if where, ok := domainOf(n, terms[i].key); ok {
			r.liked[where] += sign * terms[i].weight
		}
	}
}

// refuse gives the reason for which pod affinity keeps the pod off the node, empty when it does not.
func (r *relations) refuse(d *Demand, n *node) string {
	for i := range d.attract {
		where, ok := domainOf(n, d.attract[i].key)
		if !ok || r.attracted[where] == 0 && !r.alone {
			return reasonAffinity
		}
	}
	for i := range d.repel {
		if where, ok := domainOf(n, d.repel[i].key); ok && r.repelled[where] {
			return reasonAntiAffinity
		}
	}
	for where := range r.forbidden {
		if n.object.Labels[where.key] == where.value && hasLabel(n.object, where.key) {
			return reasonExistingAntiAffinity
		}
	}
	return ""
}

func hasLabel(node *v1.Node, key string) bool {
	_, ok := node.Labels[key]
	return ok
}

// liking sums the preferred terms that hold on the node.
func (r *relations) liking(d *Demand, n *node) (sum int64) {
	if len(r.liked) == 0 {
		return 0
	}
	seen := map[string]bool{}
	for _, terms := range [][]weightedTerm{d.preferAttract, d.preferRepel} {
		for i := range terms {
			if where, ok := domainOf(n, terms[i].key); ok && !seen[terms[i].key] {
				seen[terms[i].key] = true
				sum += r.liked[where]
			}
		}
	}
	return sum
}
