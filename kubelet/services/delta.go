package services

import (
	"cmp"
	"maps"
	"slices"
)

// Delta is what turns one desired state of the table into the next. Chains come before elements that lead to them and go
// after; an element with a new value is in both Remove and Add.
type Delta struct {
	AddChains, RemoveChains []Pick
	Remove                  []Element
	Add                     Elements
	// Flows are the UDP fronts with new routes, whose conversations with backends that are gone must be forgotten.
	Flows map[Front]Route
}

// Empty tells that nothing is to be done.
func (d Delta) Empty() bool {
	return len(d.AddChains)+len(d.RemoveChains)+len(d.Remove)+len(d.Add) == 0
}

// between compares two sets of elements.
func between(old, want Elements) (remove []Element, add Elements) {
	add = Elements{}
	for e, value := range old {
		if now, ok := want[e]; !ok || now != value {
			remove = append(remove, e)
		}
	}
	for e, value := range want {
		if before, ok := old[e]; !ok || before != value {
			add[e] = value
		}
	}
	slices.SortFunc(remove, compareElements)
	return remove, add
}

func compareElements(a, b Element) int {
	return cmp.Or(cmp.Compare(a.Set, b.Set), cmp.Compare(a.Key, b.Key))
}

// sorted gives the elements in a stable order.
func (e Elements) sorted() []Element {
	return slices.SortedFunc(maps.Keys(e), compareElements)
}
