//go:build race

package operator_test

// The race detector makes everything some ten times slower, and knows nothing of seeds: so fewer of them, and of manifests.
const (
	seeds, stormSeeds = 2, 4
	crowd             = 100
)
