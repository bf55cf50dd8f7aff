package services

import (
	"net/netip"
	"slices"
)

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

// placeSticky gives slots so that no client of a backend that stays loses it: nobody moves, and the slots of those that
// go lead to a newcomer, or else to a second slot of another backend.
func placeSticky(old, want []netip.AddrPort) []netip.AddrPort {
	slots, homeless := keepHomes(old, want)
	for i := range slots {
		if !slots[i].IsValid() && len(homeless) > 0 {
			slots[i], homeless = homeless[0], homeless[1:]
		}
	}
	slots = append(slots, homeless...)
	for len(slots) > 0 && !slots[len(slots)-1].IsValid() {
		slots = slots[:len(slots)-1]
	}
	for i := range slots {
		if !slots[i].IsValid() {
			slots[i] = second(old[i], want, i)
		}
	}
	return slots
}

// keepHomes leaves each backend that stays in its first slot, and lists those that have none.
func keepHomes(old, want []netip.AddrPort) (slots, homeless []netip.AddrPort) {
	slots = make([]netip.AddrPort, len(old))
	for _, b := range want {
		if at := slices.Index(old, b); at >= 0 {
			slots[at] = b
		} else {
			homeless = append(homeless, b)
		}
	}
	return slots, homeless
}

// second picks whom a left slot leads to: whom it led to before, or any.
func second(before netip.AddrPort, want []netip.AddrPort, slot int) netip.AddrPort {
	if slices.Contains(want, before) {
		return before
	}
	return want[slot%len(want)]
}
