// Package golden compares what a test has produced with a file that people review.
//
// A test that imports it has the flag -update, which rewrites the file instead.
package golden

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Check fails the test when got is not what the file says.
func Check(t testing.TB, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("what came out differs from %s; run the test with -update and review:\n%s", file, got)
	}
}
