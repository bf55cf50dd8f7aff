package strategy

import "slices"

// want is how many replicas of a shape are to be there, and for whom.
type want struct {
	shape   Shape
	count   int
	reasons []Reason
}

// union joins the wishes of all strategies, which come in order of precedence: of each shape the largest number, because one replica
// serves all who want its shape.
func union(wishes [][]Slots) []want {
	var wants []want
	for _, slots := range wishes {
		for _, one := range totals(slots) {
			wants = add(wants, one)
		}
	}
	return wants
}

// totals sums the slots of one strategy by shape.
func totals(slots []Slots) []want {
	var sums []want
	for _, s := range slots {
		i := slices.IndexFunc(sums, func(w want) bool { return w.shape == s.Shape })
		switch {
		case s.Count <= 0:
		case i < 0:
			sums = append(sums, want{s.Shape, s.Count, []Reason{s.Reason}})
		default:
			sums[i].count += s.Count
		}
	}
	return sums
}

func add(wants []want, one want) []want {
	i := slices.IndexFunc(wants, func(w want) bool { return w.shape == one.shape })
	if i < 0 {
		return append(wants, one)
	}
	wants[i].count = max(wants[i].count, one.count)
	wants[i].reasons = append(wants[i].reasons, one.reasons...)
	return wants
}
