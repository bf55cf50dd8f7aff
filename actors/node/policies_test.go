package node

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/nodeactor/nodeactor/supervision/catalog"
)

// update rewrites the golden file. It is what the product does on each fault in each place:
// commit a change of it only when every changed cell is meant.
var update = flag.Bool("update", false, "rewrite testdata/policies.golden")

// TestCheck10_ProductTree prints every child of the real tree with every policy cell.
func TestCheck10_ProductTree(t *testing.T) {
	const golden = "testdata/policies.golden"
	all, err := EffectivePolicies(Config{NodeName: "n"}.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := catalog.PrintEffective(&got, all); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("the tree differs from %s; go test ./actors/node -update rewrites it:\n%s", golden, got.Bytes())
	}
}
