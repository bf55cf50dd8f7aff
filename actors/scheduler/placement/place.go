package placement

import "slices"

// How many fitting nodes are compared. All in a small cluster. In a large one a pod with preferences sees as many as upstream would show
// it; one without is told apart from others by load alone, for which a smaller sample is as good.
const (
	minSample        = 100
	minSamplePercent = 5
	maxSamplePercent = 50
	nodesPerPercent  = 125
	plainPercent     = 2
)

// sampleSize is the number of fitting nodes after which the search ends.
func sampleSize(nodes int, picky bool) int {
	percent := plainPercent
	if picky {
		percent = max(maxSamplePercent-nodes/nodesPerPercent, minSamplePercent)
	}
	return min(max(nodes*percent/100, minSample), nodes)
}

// picky tells whether the pod likes some nodes that fit better than others.
func (d *Demand) picky() bool {
	return d.preferred != nil || len(d.preferAttract)+len(d.preferRepel)+len(d.softSpread) > 0
}

// Decision is the answer to one demand: a node, or the reason for which there is none.
type Decision struct {
	// Node is the chosen node, empty when the pod fits nowhere.
	Node string
	// Message explains an empty Node, as "0/3 nodes are available: ...".
	Message string
	// Preemption explains why pods of lower priority could not make room, for when Preempt found none to evict.
	Preemption string
	// Nodes is the number of nodes that were known; with none, nothing can be said about the pod.
	Nodes int
}

// Place chooses a node for the demand in the present ledger and changes nothing but the place from which the next search starts.
func (c *Cluster) Place(d *Demand) Decision {
	order := c.visiting()
	q := c.ask(d)
	fitting, refused := c.search(&q, order)
	if len(fitting) == 0 {
		return Decision{Message: explain(len(order), refused), Preemption: explainPreemption(d, len(order), refused), Nodes: len(order)}
	}
	return Decision{Node: q.best(fitting).name, Nodes: len(order)}
}

// search filters the nodes, starting where the last search ended, until it has a sample of fitting ones.
func (c *Cluster) search(q *question, order []*node) ([]candidate, map[string]int) {
	soft := c.takeCensus(q.Demand, q.softSpread)
	if q.pinned != nil {
		return c.searchPinned(q, soft, order)
	}
	want := sampleSize(len(order), q.picky())
	fitting, refused := c.fitting[:0], map[string]int{}
	visited := 0
	for ; visited < len(order) && len(fitting) < want; visited++ {
		n := order[(c.next+visited)%len(order)]
		if reason := q.refuse(n); reason != "" {
			refused[reason]++
			continue
		}
		fitting = append(fitting, q.measure(n, soft))
	}
	if len(order) > 0 {
		c.next = (c.next + visited) % len(order)
	}
	c.fitting = fitting
	return fitting, refused
}

// searchPinned looks only at the nodes that the pod names; all others count as not matching its affinity.
func (c *Cluster) searchPinned(q *question, soft []census, order []*node) ([]candidate, map[string]int) {
	refused := map[string]int{}
	var fitting []candidate
	others := len(order)
	for _, name := range q.pinned {
		n := c.nodes[name]
		if n == nil || n.object == nil {
			continue
		}
		others--
		if reason := q.refuse(n); reason != "" {
			refused[reason]++
			continue
		}
		fitting = append(fitting, q.measure(n, soft))
	}
	if others > 0 {
		refused[reasonSelector] += others
	}
	return slices.Clip(fitting), refused
}
