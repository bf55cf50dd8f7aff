package podspec

import (
	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/nodeactor/nodeactor/kubelet/runtime"
)

// The kernel's bounds and the units of CPU, and the out-of-memory scores per class of pod.
const (
	minShares, maxShares = 2, 262144
	sharesPerCPU         = 1024
	milliPerCPU          = 1000
	quotaPeriod          = 100000 // microseconds
	minQuota             = 1000   // microseconds
	guaranteedOOMScore   = -997
	bestEffortOOMScore   = 1000
	criticalPriority     = 2000000000 // system-cluster-critical and above
)

// Shares is the CPU weight of milli thousandths of a CPU.
func Shares(milli int64) uint64 {
	return uint64(min(max(milli*sharesPerCPU/milliPerCPU, minShares), maxShares))
}

// Quota is the microseconds of CPU time in each period for milli thousandths of a CPU; 0 means no bound.
func Quota(milli int64) (quota int64, period uint64) {
	if milli <= 0 {
		return 0, 0
	}
	return max(milli*quotaPeriod/milliPerCPU, minQuota), quotaPeriod
}

// ContainerResources are the limits of c in a pod of class qos on a host with memory bytes of memory.
func ContainerResources(pod *v1.Pod, c *v1.Container, qos v1.PodQOSClass, memory int64) runtime.Resources {
	request, limit := c.Resources.Requests[v1.ResourceCPU], c.Resources.Limits[v1.ResourceCPU]
	if request.IsZero() && !limit.IsZero() {
		request = limit
	}
	r := runtime.Resources{CPUShares: Shares(request.MilliValue()), OOMScoreAdj: OOMScore(pod, c, qos, memory)}
	r.CPUQuota, r.CPUPeriod = Quota(limit.MilliValue())
	bytes := c.Resources.Limits[v1.ResourceMemory]
	r.MemoryBytes = bytes.Value()
	return r
}

// OOMScore is how likely the kernel is to kill c when memory runs out: the more it uses beyond what it asked for, the
// likelier.
func OOMScore(pod *v1.Pod, c *v1.Container, qos v1.PodQOSClass, memory int64) int {
	if p := pod.Spec.Priority; p != nil && *p >= criticalPriority {
		return guaranteedOOMScore
	}
	switch qos {
	case v1.PodQOSGuaranteed:
		return guaranteedOOMScore
	case v1.PodQOSBestEffort:
		return bestEffortOOMScore
	}
	request := c.Resources.Requests[v1.ResourceMemory]
	if memory <= 0 {
		return bestEffortOOMScore - 1
	}
	score := 1000 - 1000*request.Value()/memory
	return int(min(max(score, 1000+guaranteedOOMScore), bestEffortOOMScore-1))
}

// PodResources are the limits of the pod as a whole.
func PodResources(pod *v1.Pod) runtime.Resources {
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	limits := resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})
	r := runtime.Resources{CPUShares: Shares(requests.Cpu().MilliValue())}
	if limited(pod, v1.ResourceCPU) {
		r.CPUQuota, r.CPUPeriod = Quota(limits.Cpu().MilliValue())
	}
	if limited(pod, v1.ResourceMemory) {
		r.MemoryBytes = limits.Memory().Value()
	}
	return r
}

// limited tells whether the pod as a whole has a limit: its own, or one on each container.
func limited(pod *v1.Pod, name v1.ResourceName) bool {
	if pod.Spec.Resources != nil {
		if q, ok := pod.Spec.Resources.Limits[name]; ok && !q.IsZero() {
			return true
		}
	}
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if q := list[i].Resources.Limits[name]; q.IsZero() {
				return false
			}
		}
	}
	return true
}
