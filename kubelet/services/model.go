package services

import (
	"cmp"
	"fmt"
	"net/netip"

	v1 "k8s.io/api/core/v1"
)

// Proto is a transport protocol by its number in the IP header.
type Proto uint8

// The protocols Services are routed for.
const (
	TCP Proto = 6
	UDP Proto = 17
)

// String gives the name used in transcripts.
func (p Proto) String() string {
	switch p {
	case TCP:
		return "tcp"
	case UDP:
		return "udp"
	}
	return fmt.Sprintf("proto%d", uint8(p))
}

// protoOf translates the API's protocol; ok is false for those that are not routed.
func protoOf(p v1.Protocol) (proto Proto, ok bool) {
	switch p {
	case v1.ProtocolTCP, "":
		return TCP, true
	case v1.ProtocolUDP:
		return UDP, true
	}
	return 0, false
}

// nodePortAddr stands in keys for whatever address the node has.
var nodePortAddr = netip.IPv4Unspecified()

// Front is what a client dials: a cluster address, or a port of the node when Addr is 0.0.0.0.
type Front struct {
	Addr  netip.Addr
	Proto Proto
	Port  uint16
}

// IsNodePort tells a port of the node from a cluster address.
func (f Front) IsNodePort() bool { return f.Addr == nodePortAddr }

// String gives protocol, address and port.
func (f Front) String() string {
	return fmt.Sprintf("%s %s", f.Proto, netip.AddrPortFrom(f.Addr, f.Port))
}

func compareFronts(a, b Front) int {
	return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Proto, b.Proto), cmp.Compare(a.Port, b.Port))
}

// Refusal says what happens to packets for a front that has no backends.
type Refusal uint8

// The refusals.
const (
	// Reject answers at once that nobody listens: there are no endpoints at all.
	Reject Refusal = iota
	// Drop is silent: the policy is Local and the endpoints are elsewhere, so that a load balancer asks another node.
	Drop
)

// Route is where the packets of one front go.
type Route struct {
	// Backends are the endpoints, by slot.
	Backends []netip.AddrPort
	Refusal  Refusal
	// Sticky is the timeout in seconds of a client's affinity, 0 without affinity.
	Sticky int32
	// KeepSource leaves the client's address as it is, for ports of the node with the policy Local.
	KeepSource bool
}

// Node is what routing depends on beside Services and their endpoints.
type Node struct {
	// Name is compared with the nodeName of endpoints.
	Name string
}

// Name identifies a Service.
type Name struct{ Namespace, Name string }

// String joins namespace and name as the API does.
func (n Name) String() string { return n.Namespace + "/" + n.Name }

func compareNames(a, b Name) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
