package apiserver

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"
	"k8s.io/kubernetes/pkg/registry/core/service/portallocator"
	netutils "k8s.io/utils/net"
)

// serviceAllocators hand out the addresses and node ports of Services. They live in memory and are seeded from the stored Services: what is
// allocated is what some Service says, and there is no second record that could disagree with it.
type serviceAllocators struct {
	family    api.IPFamily
	addresses map[api.IPFamily]ipallocator.Interface
	ports     *portallocator.PortAllocator
	reserved  net.IP      // the first address, for the Service `kubernetes`
	gate      atomic.Bool // open while that Service is being created
}

func newServiceAllocators(serviceCIDR string) (*serviceAllocators, error) {
	_, cidr, err := netutils.ParseCIDRSloppy(serviceCIDR)
	if err != nil {
		return nil, fmt.Errorf("cannot use service CIDR %q: %w", serviceCIDR, err)
	}
	first, err := netutils.GetIndexedIP(cidr, 1)
	if err != nil {
		return nil, fmt.Errorf("cannot use service CIDR %q: it has no room for an address: %w", serviceCIDR, err)
	}
	addresses, err := ipallocator.NewInMemory(cidr)
	if err != nil {
		return nil, err
	}
	ports, err := portallocator.NewInMemory(utilnet.PortRange{Base: firstNodePort, Size: nodePorts})
	if err != nil {
		return nil, err
	}
	a := &serviceAllocators{family: addresses.IPFamily(), ports: ports, reserved: first}
	a.addresses = map[api.IPFamily]ipallocator.Interface{a.family: &reservingAllocator{Interface: addresses, reserved: first, gate: &a.gate}}
	return a, addresses.Allocate(first)
}

// seedAllocators takes what the stored Services hold.
func (s *Server) seedAllocators(ctx context.Context) error {
	services, err := s.client.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("cannot read which service addresses are taken: %w", err)
	}
	for i := range services.Items {
		s.allocators.seed(&services.Items[i])
	}
	return nil
}

// seed takes what a stored Service holds. Twice the same is no error: it cannot be undone here, and the Service keeps what it has.
func (a *serviceAllocators) seed(svc *corev1.Service) {
	for _, text := range svc.Spec.ClusterIPs {
		if ip := netutils.ParseIPSloppy(text); ip != nil {
			for _, allocator := range a.addresses {
				_ = allocator.Allocate(ip) // outside the range, or taken already
			}
		}
	}
	for _, port := range svc.Spec.Ports {
		a.seedPort(port.NodePort)
	}
	a.seedPort(svc.Spec.HealthCheckNodePort)
}

func (a *serviceAllocators) seedPort(port int32) {
	if port != 0 {
		_ = a.ports.Allocate(int(port)) // outside the range, or taken already
	}
}

// reservingAllocator keeps one address for the Service `kubernetes`: it is handed out only while the gate is open, and stays taken when that
// Service is deleted, so that nobody else gets it before it is created again.
type reservingAllocator struct {
	ipallocator.Interface
	reserved net.IP
	gate     *atomic.Bool
}

// Allocate takes the address.
func (r *reservingAllocator) Allocate(ip net.IP) error {
	if ip.Equal(r.reserved) && r.gate.Load() {
		return nil // taken since the start, for this
	}
	return r.Interface.Allocate(ip)
}

// Release gives the address back, except the reserved one.
func (r *reservingAllocator) Release(ip net.IP) error {
	if ip.Equal(r.reserved) {
		return nil
	}
	return r.Interface.Release(ip)
}

// DryRun returns an allocator that changes nothing.
func (r *reservingAllocator) DryRun() ipallocator.Interface {
	return &reservingAllocator{Interface: r.Interface.DryRun(), reserved: r.reserved, gate: r.gate}
}
