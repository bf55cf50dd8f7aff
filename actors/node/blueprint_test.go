package node

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nodeactor/nodeactor/supervision/catalog"
)

// TestBlueprintOpensNothing holds that the tree can be had without a node: only keys are made.
func TestBlueprintOpensNothing(t *testing.T) {
	dir := t.TempDir()
	root, err := Blueprint(Config{DataDir: dir, NodeName: "n"}.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	if err := root.Validate(); err != nil {
		t.Fatal(err)
	}
	if root.Row != catalog.Rows[0].Spec.Row || len(root.Children) < 5 {
		t.Errorf("the root is %s with %d children", root.Row, len(root.Children))
	}
	made, err := os.ReadDir(dir)
	if err != nil || len(made) != 1 || made[0].Name() != "pki" {
		t.Errorf("%s holds %v (%v)", filepath.Base(dir), made, err)
	}
}
