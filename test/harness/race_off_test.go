//go:build !race

package harness_test

// checkSeeds is how many seeds each acceptance check runs.
const checkSeeds = 1000
