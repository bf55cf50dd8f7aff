package core_test

import (
	"testing"

	"github.com/nodeactor/nodeactor/supervision/core/play"
	"github.com/nodeactor/nodeactor/test/harness"
)

// TestTranscripts replays testdata/*.play.
func TestTranscripts(t *testing.T) { harness.Play(t, "testdata/*.play", play.Group) }
