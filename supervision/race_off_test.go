//go:build !race

package supervision_test

const raceEnabled = false
