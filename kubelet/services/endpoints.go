package services

import (
	"net/netip"
	"slices"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
)

// condition orders what endpoints are good for.
type condition uint8

const (
	useless condition = iota
	// leaving endpoints terminate but still serve; they are used when nothing better is left.
	leaving
	ready
)

// endpoint is one address and port that a Service's port leads to.
type endpoint struct {
	at    netip.AddrPort
	local bool
	condition
}

// conditionOf reads an endpoint's conditions; nil means true for ready, and serving follows ready.
func conditionOf(c discovery.EndpointConditions) condition {
	isReady := c.Ready == nil || *c.Ready
	terminating := c.Terminating != nil && *c.Terminating
	serving := isReady
	if c.Serving != nil {
		serving = *c.Serving
	}
	switch {
	case isReady:
		return ready
	case serving && terminating:
		return leaving
	}
	return useless
}

// endpointsOf collects, sorted and without duplicates, the usable endpoints that slices have for one port of a Service.
func endpointsOf(n Node, port v1.ServicePort, parts []*discovery.EndpointSlice) []endpoint {
	proto, _ := protoOf(port.Protocol)
	best := map[netip.AddrPort]endpoint{}
	for _, part := range parts {
		if part.AddressType != discovery.AddressTypeIPv4 {
			continue
		}
		for _, number := range portNumbers(part, port.Name, proto) {
			for _, e := range part.Endpoints {
				addEndpoint(best, n, e, number)
			}
		}
	}
	all := make([]endpoint, 0, len(best))
	for _, e := range best {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b endpoint) int { return a.at.Compare(b.at) })
	return all
}

// portNumbers finds by name the numbers a slice has for a Service's port: the names of container ports are resolved there
// already.
func portNumbers(part *discovery.EndpointSlice, name string, proto Proto) []uint16 {
	var numbers []uint16
	for _, p := range part.Ports {
		if p.Port == nil || *p.Port <= 0 || *p.Port > 65535 {
			continue
		}
		if (p.Name == nil && name != "") || (p.Name != nil && *p.Name != name) {
			continue
		}
		protocol := v1.ProtocolTCP
		if p.Protocol != nil {
			protocol = *p.Protocol
		}
		if got, ok := protoOf(protocol); ok && got == proto {
			numbers = append(numbers, uint16(*p.Port))
		}
	}
	return numbers
}

// addEndpoint keeps the better of two opinions on the same endpoint, which slices may hold for a while when endpoints
// move from one to another.
func addEndpoint(best map[netip.AddrPort]endpoint, n Node, e discovery.Endpoint, port uint16) {
	if len(e.Addresses) == 0 {
		return
	}
	addr, err := netip.ParseAddr(e.Addresses[0])
	if err != nil || !addr.Is4() || addr.IsUnspecified() {
		return
	}
	got := endpoint{
		at:        netip.AddrPortFrom(addr, port),
		local:     e.NodeName != nil && *e.NodeName == n.Name,
		condition: conditionOf(e.Conditions),
	}
	if got.condition == useless {
		return
	}
	if old, ok := best[got.at]; !ok || got.condition > old.condition {
		best[got.at] = got
	}
}

// choose picks those of all endpoints that packets may go to: the ready ones, or the leaving when none is ready.
func choose(all []endpoint, localOnly bool) (chosen []netip.AddrPort, refusal Refusal) {
	for _, want := range []condition{ready, leaving} {
		for _, e := range all {
			if e.condition == want && (e.local || !localOnly) {
				chosen = append(chosen, e.at)
			}
		}
		if len(chosen) > 0 {
			return chosen, Reject
		}
	}
	if len(all) > 0 {
		return nil, Drop
	}
	return nil, Reject
}
