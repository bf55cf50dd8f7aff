//go:build race

package apiserver

// raceEnabled tells that the tests run under the race detector.
const raceEnabled = true
