package placement

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// node is one node of the ledger. object is nil while only pods bound to it have been seen; such a node takes no new pods, but what is
// on it is known when it appears.
type node struct {
	// What every search reads comes first, so that it shares few cache lines.
	ready, unschedulable    bool
	seed                    uint64 // of the tie-break
	allocatable, used       Amounts
	scoredCPU, scoredMemory int64
	hard, soft              []v1.Taint
	name                    string

	object                    *v1.Node
	occupants                 map[types.UID]*occupant
	owners                    map[types.UID]int
	withPorts, withRepulsions int
	// reserved are the pods for which others are leaving this node.
	reserved []*Demand
}

func newNode(name string) *node {
	return &node{name: name, seed: seedOf(name), occupants: map[types.UID]*occupant{}, owners: map[types.UID]int{}}
}

// occupant is a pod that takes room on a node.
type occupant struct {
	pod      *v1.Pod
	node     string
	priority int32
	assumed  bool
	// doomed: its deletion has been asked for, to make room.
	doomed   bool
	requests Amounts
	ports    []hostPort
	owner    types.UID
	repel    []term

	scoreCPU, scoreMemory int64
}

func (n *node) attach(o *occupant) {
	n.occupants[o.pod.UID] = o
	n.used.add(o.requests)
	n.scoredCPU = saturate(n.scoredCPU, o.scoreCPU)
	n.scoredMemory = saturate(n.scoredMemory, o.scoreMemory)
	n.count(o, 1)
}

func (n *node) detach(o *occupant) {
	delete(n.occupants, o.pod.UID)
	n.count(o, -1)
	if n.used.saturated() {
		n.recount()
		return
	}
	n.used.sub(o.requests)
	n.scoredCPU -= o.scoreCPU
	n.scoredMemory -= o.scoreMemory
}

// recount sums the occupants anew, for when the running sum had hit its limit.
func (n *node) recount() {
	n.used, n.scoredCPU, n.scoredMemory = Amounts{}, 0, 0
	for _, o := range n.occupants {
		n.used.add(o.requests)
		n.scoredCPU = saturate(n.scoredCPU, o.scoreCPU)
		n.scoredMemory = saturate(n.scoredMemory, o.scoreMemory)
	}
}

func (n *node) count(o *occupant, by int) {
	if len(o.ports) > 0 {
		n.withPorts += by
	}
	if len(o.repel) > 0 {
		n.withRepulsions += by
	}
	if o.owner == "" {
		return
	}
	if n.owners[o.owner] += by; n.owners[o.owner] <= 0 {
		delete(n.owners, o.owner)
	}
}

// set takes the node's new object and tells whether a pod that did not fit before might fit now.
func (n *node) set(object *v1.Node) (helpful bool) {
	before := n.object
	n.object = object
	n.unschedulable = object.Spec.Unschedulable
	allocatable := object.Status.Allocatable
	if len(allocatable) == 0 {
		allocatable = object.Status.Capacity
	}
	was := n.allocatable
	n.allocatable = amountsOf(allocatable)
	n.hard, n.soft = splitTaints(object.Spec.Taints)
	if before == nil || !was.equal(n.allocatable) {
		return true
	}
	return before.Spec.Unschedulable && !object.Spec.Unschedulable ||
		!slices.EqualFunc(before.Spec.Taints, object.Spec.Taints, sameTaint) ||
		!maps.Equal(before.Labels, object.Labels)
}

func sameTaint(a, b v1.Taint) bool {
	return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect
}

// portsClash tells whether a port that the pod wants is taken here.
func (n *node) portsClash(want []hostPort) bool {
	if len(want) == 0 || n.withPorts == 0 {
		return false
	}
	for _, o := range n.occupants {
		for _, taken := range o.ports {
			if slices.ContainsFunc(want, taken.clash) {
				return true
			}
		}
	}
	return false
}
