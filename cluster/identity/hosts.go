package identity

import (
	"crypto/x509"
	"net"
	"slices"
)

// Hosts are the names and addresses under which clients reach a server.
type Hosts struct {
	Names []string // DNS names; empty ones are left out
	IPs   []net.IP // addresses; unspecified ones (0.0.0.0, ::) are left out
}

// APIServerHosts returns the hosts of an API server: loopback, the node, the addresses it listens on, and the names and first address of the
// Service `kubernetes`.
func APIServerHosts(node string, serviceIP net.IP, listen ...net.IP) Hosts {
	return Hosts{
		Names: []string{"localhost", node, "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		IPs:   append([]net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, serviceIP}, listen...),
	}
}

// KubeletHosts returns the hosts of a node's kubelet.
func KubeletHosts(node string, listen ...net.IP) Hosts {
	return Hosts{
		Names: []string{"localhost", node},
		IPs:   append([]net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}, listen...),
	}
}

// names returns the DNS names, sorted and each once.
func (h Hosts) names() []string {
	names := slices.DeleteFunc(slices.Clone(h.Names), func(n string) bool { return n == "" })
	slices.Sort(names)
	return slices.Compact(names)
}

// addresses returns the concrete addresses, each once.
func (h Hosts) addresses() []net.IP {
	var out []net.IP
	for _, ip := range h.IPs {
		if len(ip) == 0 || ip.IsUnspecified() || slices.ContainsFunc(out, ip.Equal) {
			continue
		}
		out = append(out, ip)
	}
	return out
}

// coveredBy reports whether the certificate is good for every host.
func (h Hosts) coveredBy(cert *x509.Certificate) bool {
	for _, name := range h.names() {
		if !slices.Contains(cert.DNSNames, name) {
			return false
		}
	}
	for _, ip := range h.addresses() {
		if !slices.ContainsFunc(cert.IPAddresses, ip.Equal) {
			return false
		}
	}
	return true
}
