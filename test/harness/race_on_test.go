//go:build race

package harness_test

// checkSeeds is smaller where each seed takes ten times as long: a run on one goroutine at a
// time has no races to be found.
const checkSeeds = 100
