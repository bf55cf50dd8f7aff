package node

import (
	"bytes"
	"testing"

	"github.com/nodeactor/nodeactor/supervision/catalog"
	"github.com/nodeactor/nodeactor/test/golden"
)

// TestCheck10_ProductTree prints every child of the real tree with every policy cell: what the
// product does on each fault in each place. Commit a change of the file only when every changed
// cell is meant.
func TestCheck10_ProductTree(t *testing.T) {
	all, err := EffectivePolicies(Config{NodeName: "n"}.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := catalog.PrintEffective(&got, all); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/policies.golden", got.Bytes())
}
