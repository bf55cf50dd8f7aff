package strategy

import "slices"

// surplus tells whether there are more replicas of some wanted shape than wanted, so that it has to be chosen which of them go.
func surplus(s State, wants []want) bool {
	return slices.ContainsFunc(wants, func(w want) bool { return s.count(w.shape) > w.count })
}

// diff gives the creates and drops that turn the observed replicas into the wanted ones. Of a surplus those that are not hydrated go
// first, then the youngest: what serves has to stay.
func diff(s State, wants []want, hydrated map[ReplicaID]bool) ([]Create, []Drop) {
	var creates []Create
	rest, names := sortReplicas(s.Replicas), newNamer(s)
	for _, w := range wants {
		kept := 0
		for _, first := range []bool{true, false} {
			rest = slices.DeleteFunc(rest, func(r Replica) bool {
				keep := r.Shape == w.shape && hydrated[r.ID] == first && kept < w.count
				if keep {
					kept++
				}
				return keep
			})
		}
		for ; kept < w.count; kept++ {
			creates = append(creates, Create{Name: names.name(), Shape: w.shape, Reasons: w.reasons})
		}
	}
	return creates, drops(rest)
}

func drops(replicas []Replica) []Drop {
	var drops []Drop
	for _, r := range replicas {
		drops = append(drops, Drop(r))
	}
	return drops
}
