//go:build race

package supervision_test

const raceEnabled = true
