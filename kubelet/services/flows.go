package services

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ForgetFlows removes the kernel's memory of UDP conversations that go to backends their front no longer has: a client
// that goes on sending from the same port would otherwise stay with a backend that is gone. Ask for it after Apply. It
// returns how many were removed. TCP needs none of it: the client notices and dials anew.
func (t *Table) ForgetFlows(fronts map[Front]Route) (int, error) {
	if len(fronts) == 0 {
		return 0, nil
	}
	h, err := netlink.NewHandleAt(t.ns, unix.NETLINK_NETFILTER)
	if err != nil {
		return 0, fmt.Errorf("cannot talk to connection tracking: %w", err)
	}
	defer h.Close()
	n, err := h.ConntrackDeleteFilters(netlink.ConntrackTable, unix.AF_INET, staleFlows{fronts, localAddrs(t)})
	if err != nil {
		return int(n), fmt.Errorf("cannot forget UDP conversations with removed endpoints: %w", err)
	}
	return int(n), nil
}

// staleFlows finds conversations with a front that go elsewhere than to its backends.
type staleFlows struct {
	fronts map[Front]Route
	local  func(netip.Addr) bool
}

// MatchConntrackFlow implements the netlink library's filter.
func (s staleFlows) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	dialled, ok := netip.AddrFromSlice(flow.Forward.DstIP.To4())
	backend, ok2 := netip.AddrFromSlice(flow.Reverse.SrcIP.To4())
	if !ok || !ok2 || Proto(flow.Forward.Protocol) != UDP {
		return false
	}
	at := netip.AddrPortFrom(backend, flow.Reverse.SrcPort)
	if r, ok := s.fronts[Front{dialled, UDP, flow.Forward.DstPort}]; ok {
		return !slices.Contains(r.Backends, at)
	}
	r, ok := s.fronts[Front{nodePortAddr, UDP, flow.Forward.DstPort}]
	return ok && s.local(dialled) && !slices.Contains(r.Backends, at)
}

// localAddrs tells the node's own addresses, loopback excepted.
func localAddrs(t *Table) func(netip.Addr) bool {
	var known map[netip.Addr]bool
	return func(a netip.Addr) bool {
		if known == nil {
			known = readAddrs(t)
		}
		return known[a]
	}
}

// readAddrs gives no addresses when they cannot be read: a conversation that is forgotten late is better than another's.
func readAddrs(t *Table) map[netip.Addr]bool {
	found := map[netip.Addr]bool{}
	h, err := netlink.NewHandleAt(t.ns, unix.NETLINK_ROUTE)
	if err != nil {
		return found
	}
	defer h.Close()
	addrs, _ := h.AddrList(nil, unix.AF_INET)
	for _, a := range addrs {
		if addr, ok := netip.AddrFromSlice(a.IP.To4()); ok && !addr.IsLoopback() {
			found[addr] = true
		}
	}
	return found
}
