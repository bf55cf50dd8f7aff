package endpoints

import (
	"maps"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/endpointslice"
	"k8s.io/endpointslice/util"
	"k8s.io/kubernetes/pkg/api/v1/endpoints"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/apis/core/v1/helper"
	utilnet "k8s.io/utils/net"
)

const (
	// capacity is how many addresses one object holds; the rest is in EndpointSlices only.
	capacity = 1000
	// managedBy marks objects that this controller made.
	managedBy, component = "endpoints.kubernetes.io/managed-by", "endpoint-controller"
	// truncated is the value of the annotation of an object beyond its capacity.
	truncated = "truncated"
)

// subsetsOf makes the subsets of a Service: one entry for each pod and port, packed.
func subsetsOf(service *corev1.Service, pods []*corev1.Pod) []corev1.EndpointSubset {
	var subsets []corev1.EndpointSubset
	for _, pod := range pods {
		if !util.ShouldPodBeInEndpoints(pod, service.Spec.PublishNotReadyAddresses) {
			continue
		}
		address, ok := addressOf(service, pod)
		if !ok {
			continue
		}
		ready := service.Spec.PublishNotReadyAddresses || podutil.IsPodReady(pod)
		for _, ports := range portsOf(service, pod) {
			subsets = append(subsets, subset(address, ports, ready))
		}
	}
	return endpoints.RepackSubsets(subsets)
}

func subset(address corev1.EndpointAddress, ports []corev1.EndpointPort, ready bool) corev1.EndpointSubset {
	if ready {
		return corev1.EndpointSubset{Addresses: []corev1.EndpointAddress{address}, Ports: ports}
	}
	return corev1.EndpointSubset{NotReadyAddresses: []corev1.EndpointAddress{address}, Ports: ports}
}

// portsOf lists the ports a pod serves for a Service; a headless Service without ports has one entry without any.
func portsOf(service *corev1.Service, pod *corev1.Pod) [][]corev1.EndpointPort {
	if len(service.Spec.Ports) == 0 && service.Spec.ClusterIP == corev1.ClusterIPNone {
		return [][]corev1.EndpointPort{nil}
	}
	var ports [][]corev1.EndpointPort
	for i := range service.Spec.Ports {
		wanted := &service.Spec.Ports[i]
		number, err := endpointslice.FindPort(pod, wanted)
		if err != nil {
			continue // the pod has no port of that name
		}
		ports = append(ports, []corev1.EndpointPort{{
			Name: wanted.Name, Port: int32(number), Protocol: wanted.Protocol, AppProtocol: wanted.AppProtocol,
		}})
	}
	return ports
}

// addressOf is a pod's address of the Service's family; false while it has none.
func addressOf(service *corev1.Service, pod *corev1.Pod) (corev1.EndpointAddress, bool) {
	want := family(service, pod)
	for _, ip := range pod.Status.PodIPs {
		parsed := utilnet.ParseIPSloppy(ip.IP)
		if parsed == nil || utilnet.IsIPv6(parsed) != (want == corev1.IPv6Protocol) {
			continue
		}
		node := pod.Spec.NodeName
		address := corev1.EndpointAddress{IP: parsed.String(), NodeName: &node, TargetRef: &corev1.ObjectReference{
			Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		}}
		if util.ShouldSetHostname(pod, service) {
			address.Hostname = pod.Spec.Hostname
		}
		return address, true
	}
	return corev1.EndpointAddress{}, false
}

// family is the Service's first address family, told from addresses where it is not said.
func family(service *corev1.Service, pod *corev1.Pod) corev1.IPFamily {
	address := pod.Status.PodIP
	switch {
	case len(service.Spec.IPFamilies) > 0:
		return service.Spec.IPFamilies[0]
	case service.Spec.ClusterIP != "" && service.Spec.ClusterIP != corev1.ClusterIPNone:
		address = service.Spec.ClusterIP
	}
	if utilnet.IsIPv6String(address) {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}

// wanted is the object a Service calls for, made from the present one.
func wanted(present *corev1.Endpoints, service *corev1.Service, pods []*corev1.Pod) *corev1.Endpoints {
	e := present.DeepCopy()
	e.Subsets = subsetsOf(service, pods)
	e.Labels = maps.Clone(service.Labels)
	if e.Labels == nil {
		e.Labels = map[string]string{}
	}
	delete(e.Labels, corev1.IsHeadlessService)
	if !helper.IsServiceIPSet(service) {
		e.Labels[corev1.IsHeadlessService] = ""
	}
	e.Labels[managedBy] = component
	delete(e.Annotations, corev1.EndpointsOverCapacity)
	if truncate(e) {
		if e.Annotations == nil {
			e.Annotations = map[string]string{}
		}
		e.Annotations[corev1.EndpointsOverCapacity] = truncated
	}
	return e
}

// truncate cuts an object down to its capacity, ready addresses first, by each subset's share; false when it fits.
func truncate(e *corev1.Endpoints) bool {
	ready, waiting := 0, 0
	for _, s := range e.Subsets {
		ready += len(s.Addresses)
		waiting += len(s.NotReadyAddresses)
	}
	if ready+waiting <= capacity {
		return false
	}
	keepReady := min(ready, capacity)
	keepWaiting := capacity - keepReady
	leftReady, leftWaiting := keepReady, keepWaiting
	for i := range e.Subsets {
		s := &e.Subsets[i]
		s.Addresses = share(s.Addresses, ready, keepReady, &leftReady)
		s.NotReadyAddresses = share(s.NotReadyAddresses, waiting, keepWaiting, &leftWaiting)
	}
	return true
}

// share cuts a subset's addresses to their part of what all may keep, rounded up, and no more than is left.
func share(addresses []corev1.EndpointAddress, all, keep int, left *int) []corev1.EndpointAddress {
	if all == 0 {
		return addresses
	}
	n := int(math.Ceil(float64(len(addresses)) / float64(all) * float64(keep)))
	n = min(n, *left, len(addresses))
	*left -= n
	return addresses[:n]
}
