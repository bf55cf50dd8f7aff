//go:build race

package harness_test

import "testing"

// checkSeeds is smaller where each seed takes ten times as long: a run on one goroutine at a
// time has no races to be found.
const checkSeeds = 100

// TestChecksWithoutRace runs the acceptance checks with all their seeds, in a build without the
// race detector.
func TestChecksWithoutRace(t *testing.T) {
	if testing.Short() {
		t.Skip("builds this package once more: left out by -short")
	}
	if out, err := command(".", "test", "-count=1", "-run", "^TestCheck", "."); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
