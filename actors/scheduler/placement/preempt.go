package placement

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corehelpers "k8s.io/component-helpers/scheduling/corev1"
)

// Eviction is a way to make room for a pod: the node, and the pods that would have to go.
type Eviction struct {
	Node    string
	Victims []*v1.Pod
}

// Preempt looks for the least harmful eviction of pods of lower priority that lets the demand onto a node; ok is false when there is
// none, or when room is already being made for the pod. Pods that guarded tells of are given up last. The victims found are taken as
// leaving, and the room is kept for the demand, until Spare, Release or Assume says otherwise.
func (c *Cluster) Preempt(d *Demand, guarded func(*v1.Pod) bool) (eviction Eviction, ok bool) {
	if !c.mayPreempt(d) {
		return Eviction{}, false
	}
	var best *toll
	found := 0
	for _, n := range c.visiting() {
		if found == sampleSize(len(c.order), true) {
			break
		}
		t := c.tollOf(d, n, guarded)
		if t == nil {
			continue
		}
		found++
		if best == nil || t.compare(best) < 0 {
			best = t
		}
	}
	if best == nil {
		return Eviction{}, false
	}
	return c.doom(d, best), true
}

// mayPreempt tells whether the pod is allowed to push others out and has not already done so.
func (c *Cluster) mayPreempt(d *Demand) bool {
	if d.pod.Spec.PreemptionPolicy != nil && *d.pod.Spec.PreemptionPolicy == v1.PreemptNever {
		return false
	}
	lower := false
	for priority := range c.priorities {
		lower = lower || priority < d.priority
	}
	return lower && !c.makingRoom(d)
}

// makingRoom tells whether pods are already leaving for this one.
func (c *Cluster) makingRoom(d *Demand) bool {
	r, ok := c.reserved[d.pod.UID]
	if !ok || c.nodes[r.node] == nil {
		return false
	}
	for _, o := range c.nodes[r.node].occupants {
		if o.priority < d.priority && (o.doomed || o.pod.DeletionTimestamp != nil) {
			return true
		}
	}
	return false
}

// doom books the victims as leaving and keeps the room.
func (c *Cluster) doom(d *Demand, t *toll) Eviction {
	eviction := Eviction{Node: t.node.name}
	for _, o := range t.victims {
		o.doomed = true
		eviction.Victims = append(eviction.Victims, o.pod)
	}
	c.reserve(d, t.node.name)
	return eviction
}

// Spare takes back that a pod is leaving, after its deletion failed.
func (c *Cluster) Spare(uid types.UID) {
	if o := c.occupants[uid]; o != nil {
		o.doomed = false
	}
}

// toll is what it costs to let a demand onto a node.
type toll struct {
	node    *node
	victims []*occupant
	guarded int
	highest int32
	sum     int64
	started time.Time // of the youngest victim
}

// compare orders tolls from least to most harmful: guarded pods, the highest priority hurt, all priorities together, the number of
// pods, and then the longer work lost.
func (t *toll) compare(u *toll) int {
	return cmp.Or(cmp.Compare(t.guarded, u.guarded), cmp.Compare(t.highest, u.highest), cmp.Compare(t.sum, u.sum),
		cmp.Compare(len(t.victims), len(u.victims)), u.started.Compare(t.started), cmp.Compare(t.node.seed, u.node.seed))
}

// priorityOffset makes sums of priorities grow with every pod, also with pods of negative priority.
const priorityOffset = 1 << 31

func (t *toll) add(o *occupant, guarded bool) {
	if len(t.victims) == 0 || o.priority > t.highest {
		t.highest = o.priority
	}
	t.victims = append(t.victims, o)
	t.sum += int64(o.priority) + priorityOffset
	if guarded {
		t.guarded++
	}
	if s := o.pod.Status.StartTime; s != nil && s.Time.After(t.started) {
		t.started = s.Time
	}
}

// tollOf works out which pods have to leave the node; nil when that does not help. It plays it through on the ledger itself and puts
// everything back.
func (c *Cluster) tollOf(d *Demand, n *node, guarded func(*v1.Pod) bool) *toll {
	if d.refuseNode(n) != "" {
		return nil
	}
	lower := lowerThan(n, d.priority, guarded)
	if len(lower) == 0 {
		return nil
	}
	for _, o := range lower {
		c.remove(o)
	}
	t := &toll{node: n}
	fits := c.fitsOn(d, n)
	for _, o := range lower {
		c.place(o)
		if fits && !c.fitsOn(d, n) {
			c.remove(o)
			t.add(o, guarded(o.pod))
		}
	}
	for _, o := range t.victims {
		c.place(o)
	}
	if !fits || len(t.victims) == 0 {
		return nil
	}
	return t
}

func (c *Cluster) fitsOn(d *Demand, n *node) bool {
	q := c.ask(d)
	return q.refuse(n) == ""
}

// lowerThan lists the pods on the node that could leave, those to be kept with the most right first.
func lowerThan(n *node, priority int32, guarded func(*v1.Pod) bool) []*occupant {
	var lower []*occupant
	for _, o := range n.occupants {
		if o.priority < priority {
			lower = append(lower, o)
		}
	}
	protected := func(o *occupant) int {
		if guarded(o.pod) {
			return 0
		}
		return 1
	}
	slices.SortFunc(lower, func(a, b *occupant) int {
		return cmp.Or(cmp.Compare(protected(a), protected(b)), cmp.Compare(b.priority, a.priority),
			startOf(a).Compare(startOf(b)), cmp.Compare(a.pod.UID, b.pod.UID))
	})
	return lower
}

func startOf(o *occupant) time.Time {
	if o.pod.Status.StartTime == nil {
		return o.pod.CreationTimestamp.Time
	}
	return o.pod.Status.StartTime.Time
}

// reservation is room that is kept for a pod for which others are leaving.
type reservation struct {
	node   string
	demand *Demand
}

func (c *Cluster) reserve(d *Demand, node string) {
	c.Release(d.pod.UID)
	c.reserved[d.pod.UID] = reservation{node, d}
	n := c.node(node)
	n.reserved = append(n.reserved, d)
}

// Release gives up the room that was kept for the pod, if any; freed tells whether there was.
func (c *Cluster) Release(uid types.UID) (freed bool) {
	r, ok := c.reserved[uid]
	if !ok {
		return false
	}
	delete(c.reserved, uid)
	if n := c.nodes[r.node]; n != nil {
		n.reserved = slices.DeleteFunc(n.reserved, func(d *Demand) bool { return d.pod.UID == uid })
		c.drop(n)
	}
	return true
}

// usedFor is what is used on the node as far as the demand is concerned: pods of lower priority do not get what is kept for others.
func (n *node) usedFor(d *Demand) *Amounts {
	if len(n.reserved) == 0 {
		return &n.used
	}
	used := Amounts{}
	used.add(n.used)
	for _, r := range n.reserved {
		if r.priority >= d.priority && r.pod.UID != d.pod.UID {
			used.add(r.requests)
		}
	}
	return &used
}

func priorityOf(pod *v1.Pod) int32 { return corehelpers.PodPriority(pod) }
