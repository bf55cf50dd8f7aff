package placement

import v1 "k8s.io/api/core/v1"

// anyAddress is the host address that stands for all of them.
const anyAddress = "0.0.0.0"

// hostPort is one port of the host that a pod needs for itself.
type hostPort struct {
	address  string
	protocol v1.Protocol
	port     int32
}

// portsOf lists the host ports of the containers and sidecars. A pod on the host's network needs every container port, which the API
// server has copied to hostPort when it defaulted the pod.
func portsOf(pod *v1.Pod) []hostPort {
	var ports []hostPort
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
			ports = appendPorts(ports, c)
		}
	}
	for i := range pod.Spec.Containers {
		ports = appendPorts(ports, &pod.Spec.Containers[i])
	}
	return ports
}

func appendPorts(ports []hostPort, c *v1.Container) []hostPort {
	for _, p := range c.Ports {
		if p.HostPort <= 0 {
			continue
		}
		port := hostPort{address: p.HostIP, protocol: p.Protocol, port: p.HostPort}
		if port.address == "" {
			port.address = anyAddress
		}
		if port.protocol == "" {
			port.protocol = v1.ProtocolTCP
		}
		ports = append(ports, port)
	}
	return ports
}

// clash tells whether two pods with these ports cannot share a host.
func (p hostPort) clash(q hostPort) bool {
	return p.port == q.port && p.protocol == q.protocol && (p.address == q.address || p.address == anyAddress || q.address == anyAddress)
}
