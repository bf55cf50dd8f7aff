package services

import (
	"net/netip"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
)

// defaultSticky is the API's own default of the affinity timeout, in seconds.
const defaultSticky = v1.DefaultClientIPServiceAffinitySeconds

// proxyNameLabel asks for another proxy than the cluster's own.
const proxyNameLabel = "service.kubernetes.io/service-proxy-name"

// routable tells whether a Service has a cluster address that we are to route.
func routable(s *v1.Service) bool {
	_, others := s.Labels[proxyNameLabel]
	return s.Spec.Type != v1.ServiceTypeExternalName && !others && clusterAddr(s).IsValid()
}

// clusterAddr is the Service's IPv4 cluster address, invalid for a headless one.
func clusterAddr(s *v1.Service) netip.Addr {
	for _, text := range append([]string{s.Spec.ClusterIP}, s.Spec.ClusterIPs...) {
		if addr, err := netip.ParseAddr(text); err == nil && addr.Is4() && !addr.IsUnspecified() {
			return addr
		}
	}
	return netip.Addr{}
}

// routesOf gives the fronts of one Service and where each leads, without regard to slots.
func routesOf(n Node, s *v1.Service, parts []*discovery.EndpointSlice) map[Front]Route {
	routes := map[Front]Route{}
	if s == nil || !routable(s) {
		return routes
	}
	internal := s.Spec.InternalTrafficPolicy != nil && *s.Spec.InternalTrafficPolicy == v1.ServiceInternalTrafficPolicyLocal
	external := s.Spec.ExternalTrafficPolicy == v1.ServiceExternalTrafficPolicyLocal
	for _, port := range s.Spec.Ports {
		proto, ok := protoOf(port.Protocol)
		if !ok || port.Port <= 0 || port.Port > 65535 {
			continue
		}
		all := endpointsOf(n, port, parts)
		routes[Front{clusterAddr(s), proto, uint16(port.Port)}] = route(s, all, internal)
		if port.NodePort > 0 && port.NodePort <= 65535 {
			r := route(s, all, external)
			r.KeepSource = external
			routes[Front{nodePortAddr, proto, uint16(port.NodePort)}] = r
		}
	}
	return routes
}

func route(s *v1.Service, all []endpoint, localOnly bool) Route {
	backends, refusal := choose(all, localOnly)
	return Route{Backends: backends, Refusal: refusal, Sticky: sticky(s)}
}

// sticky is the Service's affinity timeout in seconds.
func sticky(s *v1.Service) int32 {
	if s.Spec.SessionAffinity != v1.ServiceAffinityClientIP {
		return 0
	}
	c := s.Spec.SessionAffinityConfig
	if c == nil || c.ClientIP == nil || c.ClientIP.TimeoutSeconds == nil || *c.ClientIP.TimeoutSeconds <= 0 {
		return defaultSticky
	}
	return *c.ClientIP.TimeoutSeconds
}
