package harness

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nodeactor/nodeactor/supervision/core/play"
)

// updateVar makes Play write the answers into the transcripts. Commit only what you have read
// and understood.
const updateVar = "HARNESS_UPDATE"

// Player takes the lines of one transcript and answers them; play.Group is one for groups of
// children.
type Player = play.Player

// Play replays transcripts of a pure core (level 0), each by a player of its own, and demands
// that the answers are those which are written in them.
func Play(t *testing.T, glob string, fresh func() Player) {
	t.Helper()
	files, err := filepath.Glob(glob)
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts at %s: %v", glob, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), func(t *testing.T) { playFile(t, file, fresh()) })
	}
}

func playFile(t *testing.T, file string, p Player) {
	t.Helper()
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, err := play.Run(want, p)
	switch {
	case err != nil:
		t.Fatalf("%s: %v", file, err)
	case bytes.Equal(got, want):
	case os.Getenv(updateVar) != "":
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s: it answers something else (%s=1 rewrites it):\n%s", file, updateVar, got)
	}
}
