package core

import v1 "k8s.io/api/core/v1"

// QOS is the quality-of-service class that follows from a pod's requests and limits of CPU and memory.
func QOS(pod *v1.Pod) v1.PodQOSClass {
	any, guaranteed := false, true
	each := func(cs []v1.Container) {
		for i := range cs {
			for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
				request, limit := cs[i].Resources.Requests[name], cs[i].Resources.Limits[name]
				if request.IsZero() && !limit.IsZero() {
					request = limit
				}
				any = any || !request.IsZero() || !limit.IsZero()
				guaranteed = guaranteed && !limit.IsZero() && request.Cmp(limit) == 0
			}
		}
	}
	each(pod.Spec.InitContainers)
	each(pod.Spec.Containers)
	switch {
	case !any:
		return v1.PodQOSBestEffort
	case guaranteed:
		return v1.PodQOSGuaranteed
	}
	return v1.PodQOSBurstable
}
