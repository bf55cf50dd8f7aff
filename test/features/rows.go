package main

import (
	_ "embed"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"
)

// rowCount is how many features there are; none is ever taken away or numbered anew.
const rowCount = 128

//go:embed rows.yaml
var rowsFile []byte

// row is one feature.
type row struct {
	Row     string   `json:"row"`     // F001 to F128
	Feature string   `json:"feature"` // its short name
	Seen    string   `json:"seen"`    // how a user sees that it works
	Also    string   `json:"also"`    // what it must do beyond the usual, if anything
	Open    string   `json:"open"`    // why it is not claimed; empty: it is
	Tests   []string `json:"tests"`   // tests that prove it under other names, as actors/node.TestX or TestX
	Longer  []string `json:"longer"`  // tests that show more and are skipped unless they are asked for; they prove nothing here
}

// parseRows reads the table of features, strictly.
func parseRows(text []byte) ([]row, error) {
	var rows []row
	if err := yaml.UnmarshalStrict(text, &rows); err != nil {
		return nil, fmt.Errorf("cannot read the rows: %w", err)
	}
	return rows, nil
}

// tests are those that prove the row, or a part of it while it is open.
func (r row) tests(all names) []string {
	proofs := all.of(r.Row)
	for _, name := range r.Tests {
		full, _ := all.full(name)
		proofs = append(proofs, full)
	}
	proofs = slices.DeleteFunc(proofs, func(name string) bool {
		return slices.Contains(r.Longer, name) || slices.Contains(r.Longer, functionOf(name))
	})
	slices.Sort(proofs)
	return slices.Compact(proofs)
}

// count says how many rows are claimed.
func count(rows []row) (claimed int) {
	for _, r := range rows {
		if r.Open == "" {
			claimed++
		}
	}
	return claimed
}
