package podspec

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/fieldpath"
)

// Host is what pods can learn about their node.
type Host struct {
	// IPs are the node's addresses, primary first.
	IPs []string
	// Name is the host's own name.
	Name string
	// Allocatable is what limits count as when a container has none.
	Allocatable v1.ResourceList
	// ClusterDNS and ClusterDomain are those of the cluster; ResolvConf is the host's own file.
	ClusterDNS    []string
	ClusterDomain string
	ResolvConf    string
	// MemoryBytes is the host's memory.
	MemoryBytes int64
}

// Field is the value of a fieldRef of pod.
func Field(pod *v1.Pod, path string, podIPs []string, host Host) (string, error) {
	switch path {
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.hostIP":
		return first(host.IPs), nil
	case "status.hostIPs":
		return strings.Join(host.IPs, ","), nil
	case "status.podIP":
		return first(podIPs), nil
	case "status.podIPs":
		return strings.Join(podIPs, ","), nil
	}
	return fieldpath.ExtractFieldPathAsString(pod, path)
}

func first(s []string) string {
	if len(s) == 0 {
		return ""
	}
	return s[0]
}

// Resource is the value of a resourceFieldRef of pod; container is used when the reference names none.
func Resource(pod *v1.Pod, container *v1.Container, ref *v1.ResourceFieldSelector, host Host) (string, error) {
	if ref.ContainerName != "" {
		if container = Container(pod, ref.ContainerName); container == nil {
			return "", fmt.Errorf("cannot read %s: no container %s", ref.Resource, ref.ContainerName)
		}
	}
	kind, name, ok := strings.Cut(ref.Resource, ".")
	if !ok || container == nil {
		return "", fmt.Errorf("cannot read resource field %q", ref.Resource)
	}
	var list v1.ResourceList
	switch kind {
	case "limits":
		list = container.Resources.Limits
	case "requests":
		list = container.Resources.Requests
	default:
		return "", fmt.Errorf("cannot read resource field %q", ref.Resource)
	}
	q, set := list[v1.ResourceName(name)]
	if (!set || q.IsZero()) && kind == "limits" {
		q = host.Allocatable[v1.ResourceName(name)]
	}
	return divided(q, ref.Divisor, v1.ResourceName(name)), nil
}

func divided(q, divisor resource.Quantity, name v1.ResourceName) string {
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	if name == v1.ResourceCPU {
		return strconv.FormatInt(int64(math.Ceil(float64(q.MilliValue())/float64(divisor.MilliValue()))), 10)
	}
	return strconv.FormatInt(int64(math.Ceil(float64(q.Value())/float64(divisor.Value()))), 10)
}

// Container finds a container of pod by name, init and ephemeral containers included; nil when there is none.
func Container(pod *v1.Pod, name string) *v1.Container {
	for _, list := range [][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if c := &pod.Spec.EphemeralContainers[i].EphemeralContainerCommon; c.Name == name {
			return (*v1.Container)(c)
		}
	}
	return nil
}
