//go:build !race

package operator_test

// seeds is how many seeds a test runs, stormSeeds how many storms there are, crowd how many manifests are many.
const (
	seeds, stormSeeds = 10, 30
	crowd             = 1000
)
