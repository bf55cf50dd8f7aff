package node

import (
	"testing"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// TestBlueprintReplacesAllCode holds that no worker of a recoded blueprint runs the product's.
func TestBlueprintReplacesAllCode(t *testing.T) {
	made := map[string]bool{}
	cfg := Config{DataDir: t.TempDir(), NodeName: "n"}.WithDefaults()
	root, err := Blueprint(cfg, func(path string, spec core.ChildSpec) supervision.Handler {
		if made[path] = true; spec.Kind != core.Worker {
			t.Errorf("%s is a %v", path, spec.Kind)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := root.Validate(); err != nil {
		t.Fatal(err)
	}
	workers := 0
	var visit func(s *supervision.Spec)
	visit = func(s *supervision.Spec) {
		if s.Start != nil {
			workers++
			s.Start()
		}
		for i := range s.Children {
			visit(&s.Children[i])
		}
	}
	visit(&root)
	if workers == 0 || len(made) != workers || !made["node/store/engine"] {
		t.Errorf("%d of %d workers run other code: %v", len(made), workers, made)
	}
}
