package catalog

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/nodeactor/nodeactor/supervision/core"
)

// TestCheck10_Golden holds that the file a reviewer reads is the catalog, that it shows every
// row, and that every policy cell is filled.
func TestCheck10_Golden(t *testing.T) {
	TestGolden(t)
	shown, err := os.ReadFile(catalogFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range Rows {
		if !bytes.Contains(shown, []byte("\n"+e.Spec.Row+" ")) {
			t.Errorf("the golden file does not show %s", e.Spec.Row)
		}
		for kind, cell := range e.Spec.Policy {
			if cell.Do == 0 {
				t.Errorf("%s has no answer to %s", e.Spec.Row, core.FaultKind(kind))
			}
		}
	}
	if strings.Contains(string(shown), "unset") {
		t.Error("the golden file shows an unset cell")
	}
}
