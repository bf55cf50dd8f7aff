package catalog

import "slices"

// Alone are the rows of trees that are not a node's: those of operators that run by themselves on a store of manifests.
var Alone = []Entry{
	worker("session", Stateful, "a process's session and leases on a store of manifests", 30*second, 30*second, 5*second, quick),
}

// everyRow gives the rows of all trees.
func everyRow() []Entry { return slices.Concat(Rows, Alone) }
