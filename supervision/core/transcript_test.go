package core_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nodeactor/nodeactor/supervision/core/play"
)

// update rewrites the transcripts. Commit only what you have read and understood.
var update = flag.Bool("update", false, "rewrite testdata/*.play")

// TestTranscripts replays testdata/*.play.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.play")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".play"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := play.Run(want, play.Group())
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s: the group plays something else (-update rewrites it):\n%s", file, got)
			}
		})
	}
}
