package kubelet

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/nodeactor/nodeactor/kubelet/pod/core"
)

// rejectPrefix begins every refusal's message.
const rejectPrefix = "Pod was rejected: "

// admit decides whether this node takes a pod that was just bound to it; nil means yes. The scheduler may have decided on
// an older picture, or may not have been asked.
func (s *shared) admit(p *v1.Pod) *core.Rejection {
	if over(p) || p.DeletionTimestamp != nil {
		return nil
	}
	if n := s.node.Load(); n != nil {
		fits, err := nodeaffinity.GetRequiredNodeAffinity(p).Match(n)
		if err != nil || !fits {
			return reject("NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector")
		}
	}
	return fits(p, s.table.List(), s.facts.allocatable(s.Config.MaxPods))
}

func over(p *v1.Pod) bool { return p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed }

func reject(reason, message string) *core.Rejection {
	return &core.Rejection{Reason: reason, Message: rejectPrefix + message}
}

// fits compares what p asks for with what others leave of allocatable.
func fits(p *v1.Pod, others []*v1.Pod, allocatable v1.ResourceList) *core.Rejection {
	used, count := v1.ResourceList{}, int64(0)
	for _, o := range others {
		if over(o) || o.UID == p.UID {
			continue
		}
		count++
		for name, q := range resourcehelper.PodRequests(o, resourcehelper.PodResourcesOptions{}) {
			sum := used[name]
			sum.Add(q)
			used[name] = sum
		}
		if hostPortsClash(p, o) {
			return reject("NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports")
		}
	}
	if most := allocatable.Pods().Value(); count+1 > most {
		return reject("OutOfpods", fmt.Sprintf("Node didn't have enough resource: pods, requested: 1, used: %d, capacity: %d", count, most))
	}
	for name, q := range resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{}) {
		have, u := allocatable[name], used[name]
		if q.IsZero() {
			continue
		}
		unit := quantity(name)
		if unit(q)+unit(u) > unit(have) {
			return reject("OutOf"+string(name), fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d", name, unit(q), unit(u), unit(have)))
		}
	}
	return nil
}

func hostPortsClash(a, b *v1.Pod) bool {
	taken := map[string]bool{}
	key := func(p v1.ContainerPort) string { return fmt.Sprintf("%s/%d", p.Protocol, p.HostPort) }
	for _, c := range b.Spec.Containers {
		for _, p := range c.Ports {
			if p.HostPort > 0 {
				taken[key(p)] = true
			}
		}
	}
	for _, c := range a.Spec.Containers {
		for _, p := range c.Ports {
			if p.HostPort > 0 && taken[key(p)] {
				return true
			}
		}
	}
	return false
}
