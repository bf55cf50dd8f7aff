// Package golden compares what a test has produced with a file that people review.
//
// A test that imports it has the flag -update, which rewrites the file instead.
package golden

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
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

// Transcripts plays each file that pattern matches, in a subtest of its own, and checks that the file says what came out: a transcript has
// the answers beside what was asked. It fails when there is none.
func Transcripts(t *testing.T, pattern string, play func(t *testing.T, text []byte) []byte) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			Check(t, file, play(t, text))
		})
	}
}
