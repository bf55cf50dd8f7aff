package harness

import "math/rand/v2"

// style is how a seed tends to choose among what can be run. Choosing alike all the time finds
// few of the orders in which one actor is much slower than the others.
type style struct {
	kind styleKind
	// salt decides who is slow.
	salt uint64
}

type styleKind uint8

const (
	// even gives each the same chance.
	even styleKind = iota
	// hasty prefers what became ready last, patient what has been ready for long.
	hasty
	patient
	// unfair lets some children wait as long as others are ready.
	unfair
	styleKinds
)

// How strong a tendency is.
const (
	// tendency of so many choices follow the style, out of outOf.
	tendency, outOf = 7, 8
	// slowOf children one is slow in an unfair seed.
	slowOf = 4
)

func newStyle(rng *rand.Rand) style {
	return style{kind: styleKind(rng.IntN(int(styleKinds))), salt: rng.Uint64()}
}

// pick chooses one of at least one item.
func (y style) pick(rng *rand.Rand, ready []item) int {
	n := len(ready)
	if n == 1 {
		return 0
	}
	if y.kind == even || rng.IntN(outOf) >= tendency {
		return rng.IntN(n)
	}
	switch y.kind {
	case hasty:
		return n - 1
	case patient:
		return 0
	}
	return y.quick(rng.IntN(n), ready)
}

// quick is the first item from i on that is not of a slow child, or i when all are.
func (y style) quick(i int, ready []item) int {
	for j := range ready {
		if k := (i + j) % len(ready); !y.slow(&ready[k]) {
			return k
		}
	}
	return i
}

func (y style) slow(it *item) bool {
	return it.timer == nil && it.wake == nil && it.call == nil && mixText(y.salt, it.work.Path())%slowOf == 0
}
