package harness

// Odds of Buggify.
const (
	// armedOf sites one is armed in a seed, and fires once in firesOf calls.
	armedOf, firesOf = 4, 4
)

// Buggify is for places where a test or a fake may misbehave: it is twice random. The seed
// decides whether the site is armed in this run at all, and if it is, whether it fires this
// time; so some runs have many of a kind and most have none.
func (k *Kit) Buggify(site string) bool {
	armed, known := k.buggy[site]
	if !known {
		if k.buggy == nil {
			k.buggy = map[string]bool{}
		}
		armed = k.rand.IntN(armedOf) == 0
		k.buggy[site] = armed
	}
	if !armed || k.rand.IntN(firesOf) != 0 {
		return false
	}
	k.Note("buggify %s", site)
	return true
}
