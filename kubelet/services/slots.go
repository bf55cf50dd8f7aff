package services

import "net/netip"

// place gives each wanted backend a slot, moving as few as possible: who has a slot within the new count keeps it, and the
// others fill the holes in order.
func place(old, want []netip.AddrPort) []netip.AddrPort {
	slots := make([]netip.AddrPort, len(want))
	wanted := make(map[netip.AddrPort]bool, len(want))
	for _, b := range want {
		wanted[b] = true
	}
	for i, b := range old {
		if i < len(slots) && wanted[b] {
			slots[i] = b
			delete(wanted, b)
		}
	}
	hole := 0
	for _, b := range want {
		if !wanted[b] {
			continue
		}
		for slots[hole].IsValid() {
			hole++
		}
		slots[hole] = b
		delete(wanted, b)
	}
	return slots
}
