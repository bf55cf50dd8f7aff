//go:build !race

package engine

// simSeeds is how many runs each simulation makes unless HARNESS_SEEDS says otherwise; lookers is how many manifests look in an outage.
const simSeeds, lookers = 300, 100_000
