//go:build race

package sim

// seeds is few where the race detector makes each ten times as slow; it runs one goroutine at a
// time anyway.
const seeds = 200
