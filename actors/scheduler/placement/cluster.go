package placement

import (
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Readiness judges whether a node may get pods.
type Readiness func(*v1.Node) bool

// ConditionReady is the Readiness that believes the stored Ready condition.
func ConditionReady(node *v1.Node) bool {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == v1.NodeReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}

// Namespaces gives the labels of a namespace; ok is false for one that is not known.
type Namespaces func(name string) (labels map[string]string, ok bool)

// Cluster is the ledger of nodes and of what is placed on them. See the package comment for its caller's duties.
type Cluster struct {
	ready  Readiness
	spaces Namespaces
	nodes  map[string]*node
	// occupants by the pod's UID, and by namespace for affinity, which looks at pods of few namespaces.
	occupants   map[types.UID]*occupant
	byNamespace map[string]map[types.UID]*occupant
	// repelling counts occupants that keep others away, so that the usual cluster without any pays nothing for them.
	repelling int
	// unready counts the observed nodes that are not ready.
	unready int
	// priorities counts occupants by priority; where all are alike, nobody can be pushed out.
	priorities map[int32]int
	reserved   map[types.UID]reservation

	// order is the visiting order: zones take turns, so that a sample holds all of them. It is nil after the set of nodes changed.
	order []*node
	next  int
	// fitting is the sample of the search under way, kept only for its memory.
	fitting []candidate
}

// NewCluster makes an empty ledger. A nil readiness is ConditionReady; nil spaces knows namespaces by their names only.
func NewCluster(ready Readiness, spaces Namespaces) *Cluster {
	if ready == nil {
		ready = ConditionReady
	}
	return &Cluster{
		ready:       ready,
		spaces:      spaces,
		nodes:       map[string]*node{},
		occupants:   map[types.UID]*occupant{},
		byNamespace: map[string]map[types.UID]*occupant{},
		priorities:  map[int32]int{},
		reserved:    map[types.UID]reservation{},
	}
}

// SetNode takes a new or changed node; helpful is true when a pod that fitted nowhere might fit now.
func (c *Cluster) SetNode(object *v1.Node) (helpful bool) {
	n := c.node(object.Name)
	if n.object == nil {
		c.unready++
	}
	if n.object == nil || zoneOf(n.object) != zoneOf(object) {
		c.order = nil
	}
	wasReady := n.ready
	helpful = n.set(object)
	c.judge(n, c.ready(object))
	return helpful || n.ready && !wasReady
}

// DeleteNode forgets the node; pods still bound to it stay on the books until they are deleted.
func (c *Cluster) DeleteNode(name string) {
	n := c.nodes[name]
	if n == nil || n.object == nil {
		return
	}
	c.order = nil
	c.judge(n, true)
	n.object, n.ready, n.allocatable, n.hard, n.soft = nil, false, Amounts{}, nil, nil
	c.drop(n)
}

// Review asks the readiness of every node again, for judgements that change with time alone. It lists the nodes whose judgement
// changed; helpful is true when one of them became ready.
func (c *Cluster) Review() (changed []*v1.Node, helpful bool) {
	for _, n := range c.nodes {
		if n.object == nil {
			continue
		}
		if ready := c.ready(n.object); ready != n.ready {
			c.judge(n, ready)
			changed = append(changed, n.object)
			helpful = helpful || ready
		}
	}
	return changed, helpful
}

// judge notes a node's readiness.
func (c *Cluster) judge(n *node, ready bool) {
	if n.object == nil {
		return
	}
	if n.ready && !ready {
		c.unready++
	}
	if !n.ready && ready {
		c.unready--
	}
	n.ready = ready
}

// Unready is the number of nodes that are not ready.
func (c *Cluster) Unready() int { return c.unready }

// Nodes is the number of nodes that have been observed.
func (c *Cluster) Nodes() int { return len(c.visiting()) }

// Observe takes the pod as it was read: one that is bound and still alive takes room on its node, any other one takes none. An assumed
// pod that is read without a node is left alone, for that reading is older than its binding. freed is true when room came free.
func (c *Cluster) Observe(pod *v1.Pod) (freed bool) {
	old := c.occupants[pod.UID]
	switch {
	case Terminal(pod):
		return c.remove(old)
	case pod.Spec.NodeName == "":
		return false
	case old != nil && old.node == pod.Spec.NodeName && !old.assumed && old.pod.ResourceVersion == pod.ResourceVersion:
		return false
	}
	o := c.newOccupant(pod)
	if old != nil {
		freed = old.node != o.node || !old.requests.equal(o.requests)
		o.doomed = old.doomed
		c.remove(old)
	}
	freed = c.Release(pod.UID) || freed
	c.place(o)
	return freed
}

// Terminal tells whether the pod has ended for good, so that it takes no room any more although it still exists.
func Terminal(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

// DeletePod takes a deleted pod off the books; freed is true when it had been on them.
func (c *Cluster) DeletePod(uid types.UID) (freed bool) {
	released := c.Release(uid)
	return c.remove(c.occupants[uid]) || released
}

// Assume books the pod on the node before its binding is known to have been stored.
func (c *Cluster) Assume(d *Demand, node string) {
	c.Release(d.pod.UID)
	c.remove(c.occupants[d.pod.UID])
	c.place(&occupant{
		pod: d.pod, node: node, priority: d.priority, assumed: true, requests: d.requests, ports: d.ports, owner: d.owner,
		repel: d.repel, scoreCPU: d.scoreCPU, scoreMemory: d.scoreMemory,
	})
}

// Forget takes an assumed pod off the books after its binding failed; one that has been observed bound stays.
func (c *Cluster) Forget(uid types.UID) (freed bool) {
	if o := c.occupants[uid]; o != nil && o.assumed {
		return c.remove(o)
	}
	return false
}

// Placed gives the node the pod is booked on, assumed or observed.
func (c *Cluster) Placed(uid types.UID) (node string, ok bool) {
	o := c.occupants[uid]
	if o == nil {
		return "", false
	}
	return o.node, true
}

func (c *Cluster) newOccupant(pod *v1.Pod) *occupant {
	o := &occupant{pod: pod, node: pod.Spec.NodeName, priority: priorityOf(pod), requests: requestsOf(pod), ports: portsOf(pod), owner: ownerOf(pod)}
	o.scoreCPU, o.scoreMemory = orElse(o.requests.MilliCPU, assumedMilliCPU), orElse(o.requests.Memory, assumedMemory)
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		o.repel = compileTerms(pod, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, c.spaces)
	}
	return o
}

func (c *Cluster) node(name string) *node {
	n := c.nodes[name]
	if n == nil {
		n = newNode(name)
		c.nodes[name] = n
	}
	return n
}

// drop lets go of a node that neither exists nor has pods.
func (c *Cluster) drop(n *node) {
	if n.object == nil && len(n.occupants)+len(n.reserved) == 0 {
		delete(c.nodes, n.name)
	}
}

func (c *Cluster) place(o *occupant) {
	c.node(o.node).attach(o)
	c.occupants[o.pod.UID] = o
	c.priorities[o.priority]++
	space := c.byNamespace[o.pod.Namespace]
	if space == nil {
		space = map[types.UID]*occupant{}
		c.byNamespace[o.pod.Namespace] = space
	}
	space[o.pod.UID] = o
	if len(o.repel) > 0 {
		c.repelling++
	}
}

func (c *Cluster) remove(o *occupant) bool {
	if o == nil {
		return false
	}
	if c.priorities[o.priority]--; c.priorities[o.priority] == 0 {
		delete(c.priorities, o.priority)
	}
	n := c.nodes[o.node]
	n.detach(o)
	c.drop(n)
	delete(c.occupants, o.pod.UID)
	space := c.byNamespace[o.pod.Namespace]
	if delete(space, o.pod.UID); len(space) == 0 {
		delete(c.byNamespace, o.pod.Namespace)
	}
	if len(o.repel) > 0 {
		c.repelling--
	}
	return true
}

func zoneOf(node *v1.Node) string {
	return node.Labels[v1.LabelTopologyRegion] + "\x00" + node.Labels[v1.LabelTopologyZone]
}

// visiting lists the observed nodes so that zones take turns, each zone by name.
func (c *Cluster) visiting() []*node {
	if c.order != nil {
		return c.order
	}
	zones := map[string][]*node{}
	total := 0
	for _, n := range c.nodes {
		if n.object != nil {
			zones[zoneOf(n.object)] = append(zones[zoneOf(n.object)], n)
			total++
		}
	}
	names := slices.Sorted(maps.Keys(zones))
	for _, nodes := range zones {
		slices.SortFunc(nodes, func(a, b *node) int { return strings.Compare(a.name, b.name) })
	}
	c.order = interleave(names, zones, total)
	return c.order
}

func interleave(names []string, zones map[string][]*node, total int) []*node {
	order := make([]*node, 0, total)
	for round := 0; len(order) < total; round++ {
		for _, zone := range names {
			if round < len(zones[zone]) {
				order = append(order, zones[zone][round])
			}
		}
	}
	return order
}

// Node gives an observed node's object; nil when there is none of that name.
func (c *Cluster) Node(name string) *v1.Node {
	if n := c.nodes[name]; n != nil {
		return n.object
	}
	return nil
}

// NodeNames lists the observed nodes in no order.
func (c *Cluster) NodeNames() []string {
	names := make([]string, 0, len(c.nodes))
	for _, n := range c.visiting() {
		names = append(names, n.name)
	}
	return names
}

// Booked lists the pods on the books in no order.
func (c *Cluster) Booked() []types.UID { return slices.Collect(maps.Keys(c.occupants)) }
