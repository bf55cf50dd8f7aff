package placement

// Reasons for which a node refuses a pod, worded as upstream words them, because people and tools search for those words.
const (
	reasonNotReady              = "node(s) were not ready"
	reasonUnschedulable         = "node(s) were unschedulable"
	reasonName                  = "node(s) didn't match the requested node name"
	reasonSelector              = "node(s) didn't match Pod's node affinity/selector"
	reasonTaint                 = "node(s) had untolerated taint(s)"
	reasonPorts                 = "node(s) didn't have free ports for the requested pod ports"
	reasonTooManyPods           = "Too many pods"
	insufficientPrefix          = "Insufficient "
	reasonInsufficientCPU       = insufficientPrefix + "cpu"
	reasonInsufficientMemory    = insufficientPrefix + "memory"
	reasonInsufficientEphemeral = insufficientPrefix + "ephemeral-storage"
	reasonSpread                = "node(s) didn't match pod topology spread constraints"
	reasonSpreadLabel           = reasonSpread + " (missing required label)"
	reasonAffinity              = "node(s) didn't match pod affinity rules"
	reasonAntiAffinity          = "node(s) didn't match pod anti-affinity rules"
	reasonExistingAntiAffinity  = "node(s) didn't satisfy existing pods anti-affinity rules"
)

// question is one demand put to the present ledger.
type question struct {
	*Demand
	spreads   []census
	relations *relations
}

func (c *Cluster) ask(d *Demand) question {
	return question{Demand: d, spreads: c.takeCensus(d, d.hardSpread), relations: c.relate(d)}
}

// refuse is the filter chain: the reason of the first filter that refuses the node, empty when the pod may run there.
func (q *question) refuse(n *node) string {
	if reason := q.refuseNode(n); reason != "" {
		return reason
	}
	if n.portsClash(q.ports) {
		return reasonPorts
	}
	if reason := n.allocatable.lacking(n.usedFor(q.Demand), &q.requests); reason != "" {
		return reason
	}
	for i := range q.spreads {
		if reason := q.spreads[i].refuse(n); reason != "" {
			return reason
		}
	}
	if q.relations != nil {
		return q.relations.refuse(q.Demand, n)
	}
	return ""
}

// refuseNode holds the filters that look at the node alone, not at what is on it.
func (d *Demand) refuseNode(n *node) string {
	switch {
	case !n.ready && !d.toleratesUnready:
		return reasonNotReady
	case n.unschedulable && !d.toleratesU:
		return reasonUnschedulable
	case d.pod.Spec.NodeName != "" && d.pod.Spec.NodeName != n.name:
		return reasonName
	case !d.selects(n):
		return reasonSelector
	case len(n.hard) > 0 && !toleratesAll(d.pod, n.hard):
		return reasonTaint
	}
	return ""
}

// selects tells whether the node selector and the required node affinity allow the node; a malformed term allows none.
func (d *Demand) selects(n *node) bool {
	if !d.selective {
		return true
	}
	match, err := d.affinity.Match(n.object)
	return match && err == nil
}
