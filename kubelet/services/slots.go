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

// placeSticky gives slots so that clients of a backend that stays keep it: nobody moves, and the slots of those that go
// lead to a newcomer, or else to a second slot of another backend, which the next newcomer gets.
func placeSticky(old, want []netip.AddrPort) []netip.AddrPort {
	slots, homeless := keepSlots(old, want)
	for i := range slots {
		free := !slots[i].IsValid() || slices.Contains(slots[:i], slots[i])
		if free && len(homeless) > 0 {
			slots[i], homeless = homeless[0], homeless[1:]
		}
	}
	slots = append(slots, homeless...)
	for len(slots) > 0 && !slots[len(slots)-1].IsValid() {
		slots = slots[:len(slots)-1]
	}
	for i := range slots {
		if !slots[i].IsValid() {
			slots[i] = second(slots[:i], want, i)
		}
	}
	return slots
}

// keepSlots empties the slots of backends that go, and lists those that have none.
func keepSlots(old, want []netip.AddrPort) (slots, homeless []netip.AddrPort) {
	slots = make([]netip.AddrPort, len(old))
	for i, b := range old {
		if slices.Contains(want, b) {
			slots[i] = b
		}
	}
	for _, b := range want {
		if !slices.Contains(old, b) {
			homeless = append(homeless, b)
		}
	}
	return slots, homeless
}

// second picks whom an empty slot leads to: somebody before it where there is one, so that a backend's first slot is its own.
func second(before, want []netip.AddrPort, slot int) netip.AddrPort {
	if slot > 0 {
		return before[slot/2]
	}
	return want[0]
}
