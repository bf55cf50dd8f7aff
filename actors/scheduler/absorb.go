package scheduler

import (
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodeactor/nodeactor/actors/scheduler/placement"
)

// absorb takes one item of the inbox into ledger and queue.
func (s *scheduler) absorb(item any) {
	switch i := item.(type) {
	case listed:
		s.absorbList(i)
	case []Change:
		for _, change := range i {
			s.absorbChange(change)
		}
	case bound:
		s.absorbBound(i)
	case retainted:
		s.absorbRetainted(i)
	case evicted:
		if i.err != nil && !apierrors.IsNotFound(i.err) {
			s.cluster.Spare(i.victim)
		}
	}
}

func (s *scheduler) absorbChange(c Change) {
	switch {
	case c.Node != nil && c.Deleted:
		s.nodeGone(c.Node.Name)
	case c.Node != nil:
		s.nodeSeen(c.Node)
	case c.Pod != nil && c.Deleted:
		s.podGone(c.Pod.UID)
	case c.Pod != nil:
		s.podSeen(c.Pod)
	}
}

// absorbList takes the whole state and drops what is no longer in it.
func (s *scheduler) absorbList(l listed) {
	nodes, pods := map[string]bool{}, map[types.UID]bool{}
	for _, n := range l.nodes {
		nodes[n.Name] = true
		s.nodeSeen(n)
	}
	for _, p := range l.pods {
		pods[p.UID] = true
		s.podSeen(p)
	}
	for _, name := range s.cluster.NodeNames() {
		if !nodes[name] {
			s.nodeGone(name)
		}
	}
	for _, uid := range s.cluster.Booked() {
		if !pods[uid] {
			s.podGone(uid)
		}
	}
	for uid := range s.queue.entries {
		if !pods[uid] {
			s.podGone(uid)
		}
	}
}

func (s *scheduler) nodeSeen(n *v1.Node) {
	s.helped = s.cluster.SetNode(n) || s.helped
	s.keepTaints(n)
}

func (s *scheduler) nodeGone(name string) {
	s.cluster.DeleteNode(name)
	delete(s.retainted, name)
	delete(s.mistainted, name)
}

// podGone frees what the pod took, which may be what others wait for.
func (s *scheduler) podGone(uid types.UID) {
	s.queue.remove(uid)
	s.helped = s.cluster.DeletePod(uid) || s.helped
}

func (s *scheduler) podSeen(p *v1.Pod) {
	_, booked := s.cluster.Placed(p.UID)
	s.helped = s.cluster.Observe(p) || s.helped
	switch {
	case p.Spec.NodeName != "":
		s.queue.remove(p.UID)
		s.related = true
	case booked && s.queue.entries[p.UID] == nil:
		// An older reading of a pod that is known to be bound.
	case s.pending(p):
		s.queue.offer(p, s.cluster.Compile)
	default:
		s.queue.remove(p.UID)
		s.helped = s.cluster.Release(p.UID) || s.helped
	}
}

// pending tells whether the pod is this scheduler's to place now.
func (s *scheduler) pending(p *v1.Pod) bool {
	return p.Spec.SchedulerName == s.deps.Name && p.DeletionTimestamp == nil && len(p.Spec.SchedulingGates) == 0 && !placement.Terminal(p)
}

// relates tells whether pods being placed elsewhere can help this one.
func (e *entry) relates() bool { return e.demand.Relates() }

// absorbBound takes the outcome of a binding. After a success the pod stays assumed until it is read as bound; after a failure its
// room is given back and it rests, unless it has been read as bound or gone meanwhile.
func (s *scheduler) absorbBound(b bound) {
	if b.err == nil {
		s.tellScheduled(b.pod, b.node)
		return
	}
	s.helped = s.cluster.Forget(b.pod.UID) || s.helped
	e := s.queue.entries[b.pod.UID]
	switch {
	case e == nil || e.state != binding:
	case b.gone():
		s.queue.remove(b.pod.UID)
	default:
		s.queue.failed(e, s.now, resting)
	}
}
