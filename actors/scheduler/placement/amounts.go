package placement

import (
	"math"

	v1 "k8s.io/api/core/v1"
	podresource "k8s.io/component-helpers/resource"
)

// Amounts is a vector of resources: CPU in thousandths of a core, memory and ephemeral storage in bytes, the rest in units.
// The zero value is nothing of everything.
type Amounts struct {
	MilliCPU, Memory, Ephemeral, Pods int64
	// Extended holds every other resource by name; nil when there is none.
	Extended map[v1.ResourceName]int64
}

// amountsOf reads a resource list; negative quantities count as nothing.
func amountsOf(list v1.ResourceList) Amounts {
	var a Amounts
	for name, quantity := range list {
		switch name {
		case v1.ResourceCPU:
			a.MilliCPU = max(quantity.MilliValue(), 0)
		case v1.ResourceMemory:
			a.Memory = max(quantity.Value(), 0)
		case v1.ResourceEphemeralStorage:
			a.Ephemeral = max(quantity.Value(), 0)
		case v1.ResourcePods:
			a.Pods = max(quantity.Value(), 0)
		default:
			a.extend(name, max(quantity.Value(), 0))
		}
	}
	return a
}

func (a *Amounts) extend(name v1.ResourceName, value int64) {
	if value == 0 {
		return
	}
	if a.Extended == nil {
		a.Extended = map[v1.ResourceName]int64{}
	}
	a.Extended[name] = value
}

// requestsOf is what the pod takes of its node, itself included as one of "pods": containers, sidecars, init containers, pod-level
// requests and overhead, by the rules of the upstream helper.
func requestsOf(pod *v1.Pod) Amounts {
	a := amountsOf(podresource.PodRequests(pod, podresource.PodResourcesOptions{UseStatusResources: true}))
	a.Pods = 1
	return a
}

// add saturates instead of wrapping, so an absurd request can only make a node look full, never empty.
func (a *Amounts) add(b Amounts) {
	a.MilliCPU = saturate(a.MilliCPU, b.MilliCPU)
	a.Memory = saturate(a.Memory, b.Memory)
	a.Ephemeral = saturate(a.Ephemeral, b.Ephemeral)
	a.Pods = saturate(a.Pods, b.Pods)
	for name, value := range b.Extended {
		if a.Extended == nil {
			a.Extended = map[v1.ResourceName]int64{}
		}
		a.Extended[name] = saturate(a.Extended[name], value)
	}
}

func saturate(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// saturated tells that a sum ran into the limit, after which taking a part away again would be wrong.
func (a *Amounts) saturated() bool {
	if a.MilliCPU == math.MaxInt64 || a.Memory == math.MaxInt64 || a.Ephemeral == math.MaxInt64 {
		return true
	}
	for _, value := range a.Extended {
		if value == math.MaxInt64 {
			return true
		}
	}
	return false
}

func (a *Amounts) sub(b Amounts) {
	a.MilliCPU -= b.MilliCPU
	a.Memory -= b.Memory
	a.Ephemeral -= b.Ephemeral
	a.Pods -= b.Pods
	for name, value := range b.Extended {
		if a.Extended[name] -= value; a.Extended[name] <= 0 {
			delete(a.Extended, name)
		}
	}
}

// lacking names the first resource of which want does not fit beside used within a; empty when all fits. A resource that is not asked
// for is not looked at, so an overfull node still takes a pod that wants none of what it lacks.
func (a *Amounts) lacking(used, want *Amounts) string {
	switch {
	case !fits(a.Pods, used.Pods, want.Pods):
		return reasonTooManyPods
	case !fits(a.MilliCPU, used.MilliCPU, want.MilliCPU):
		return reasonInsufficientCPU
	case !fits(a.Memory, used.Memory, want.Memory):
		return reasonInsufficientMemory
	case !fits(a.Ephemeral, used.Ephemeral, want.Ephemeral):
		return reasonInsufficientEphemeral
	}
	if len(want.Extended) == 0 {
		return ""
	}
	return a.lackingExtended(used, want)
}

// lackingExtended picks the lowest name, so that the same node is always counted under the same reason.
func (a *Amounts) lackingExtended(used, want *Amounts) string {
	missing := ""
	for name, value := range want.Extended {
		if !fits(a.Extended[name], used.Extended[name], value) && (missing == "" || string(name) < missing) {
			missing = string(name)
		}
	}
	if missing == "" {
		return ""
	}
	return insufficientPrefix + missing
}

func fits(have, used, want int64) bool { return want == 0 || want <= have-used }

func (a Amounts) equal(b Amounts) bool {
	if a.MilliCPU != b.MilliCPU || a.Memory != b.Memory || a.Ephemeral != b.Ephemeral || a.Pods != b.Pods || len(a.Extended) != len(b.Extended) {
		return false
	}
	for name, value := range a.Extended {
		if b.Extended[name] != value {
			return false
		}
	}
	return true
}
