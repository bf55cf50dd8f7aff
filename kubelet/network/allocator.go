package network

import "net/netip"

// allocator decides which address comes next. It keeps no state of its own but the last one given: an address just
// released is the last to be given again, so that stale connections and caches do not meet a new pod.
type allocator struct {
	cidr netip.Prefix
	last netip.Addr
}

func newAllocator(cidr netip.Prefix) *allocator {
	cidr = cidr.Masked()
	return &allocator{cidr: cidr, last: cidr.Addr().Next()}
}

// gateway is the first address of the range.
func (a *allocator) gateway() netip.Addr { return a.cidr.Addr().Next() }

// broadcast is the last address of the range.
func (a *allocator) broadcast() netip.Addr {
	b := a.cidr.Addr().As4()
	for bit := a.cidr.Bits(); bit < 32; bit++ {
		b[bit/8] |= 1 << (7 - bit%8)
	}
	return netip.AddrFrom4(b)
}

// usable reports whether a pod may have addr.
func (a *allocator) usable(addr netip.Addr) bool {
	return a.cidr.Contains(addr) && addr != a.cidr.Addr() && addr != a.gateway() && addr != a.broadcast()
}

// next gives the next address that is not taken, going round the range once.
func (a *allocator) next(taken func(netip.Addr) bool) (netip.Addr, bool) {
	addr := a.last
	for {
		if addr = addr.Next(); !a.cidr.Contains(addr) {
			addr = a.cidr.Addr()
		}
		if a.usable(addr) && !taken(addr) {
			a.last = addr
			return addr, true
		}
		if addr == a.last {
			return netip.Addr{}, false
		}
	}
}
