//go:build race

package engine

// simSeeds is few where the race detector makes each ten times as slow; it runs one goroutine at a time anyway. So are lookers.
const simSeeds, lookers = 20, 10_000
