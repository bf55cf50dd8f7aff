//go:build !race

package sim

// seeds is how many runs are made unless HARNESS_SEEDS says otherwise.
const seeds = 10_000
