package rules

import (
	"cmp"
	"slices"
)

// Rule is one house rule.
type Rule struct {
	Name  string
	Check func(*Tree) []Finding
}

// All lists the rules.
func All() []Rule {
	return []Rule{
		{"imports point down", floors},
		{"one folder per engine", engines},
		{"goroutines and clocks", concurrency},
		{"nothing blocks in Receive", receives},
		{"package sentence", packageSentence},
		{"manual of a top folder", manuals},
		{"documented names", documented},
		{"sentinel sentence", sentinels},
		{"error text", errorText},
		{"skips say why", skips},
		{"no unfinished work", unfinished},
		{"no private places", privatePlaces},
		{"function length", functionLength},
		{"mentions can be followed", mentions},
	}
}

// Check runs all rules and gives their findings in the order of the files.
func Check(t *Tree) []Finding {
	var all []Finding
	for _, rule := range All() {
		for _, f := range rule.Check(t) {
			f.Rule = rule.Name
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line))
	})
	return all
}
