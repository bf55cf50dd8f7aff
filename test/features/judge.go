package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
)

// rowOfTest finds the number that a test is named after.
var rowOfTest = regexp.MustCompile(`^Test(F[0-9]+)_`)

// faults is what can be seen to be wrong without running a test: rows that are not whole, claims without a test, names of
// tests that there are not.
func faults(rows []row, tests names) []error {
	found := numbering(rows)
	known := map[string]bool{}
	for _, r := range rows {
		known[r.Row] = true
		found = append(found, r.faults(tests)...)
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		if m := rowOfTest.FindStringSubmatch(functionOf(name)); m != nil && !known[m[1]] {
			found = append(found, fmt.Errorf("%s is named after a row that does not exist", name))
		}
	}
	return found
}

func numbering(rows []row) (found []error) {
	if len(rows) != rowCount {
		found = append(found, fmt.Errorf("there are %d rows, want %d", len(rows), rowCount))
	}
	for i, r := range rows {
		if want := fmt.Sprintf("F%03d", i+1); r.Row != want {
			found = append(found, fmt.Errorf("row %q is in the place of %s", r.Row, want))
		}
	}
	return found
}

func (r row) faults(tests names) (found []error) {
	if r.Feature == "" || r.Seen == "" {
		found = append(found, fmt.Errorf("%s does not say what it is and how a user sees it", r.Row))
	}
	for _, name := range slices.Concat(r.Tests, r.Longer) {
		if _, err := tests.full(name); err != nil {
			found = append(found, fmt.Errorf("%s names %w", r.Row, err))
		}
	}
	if r.Open == "" && len(r.tests(tests)) == 0 {
		found = append(found, fmt.Errorf("%s (%s) is claimed and has no test: name one, or say why it is open", r.Row, r.Feature))
	}
	return found
}

// unproved are the claims that a run of the tests has not shown: a test of theirs failed, was skipped, or did not run.
func unproved(rows []row, tests names, results map[string]result) (found []error) {
	for _, r := range rows {
		if r.Open != "" {
			continue
		}
		for _, name := range r.tests(tests) {
			if why := results[name].missing(); why != "" {
				found = append(found, fmt.Errorf("%s (%s) is claimed and not proved: %s %s", r.Row, r.Feature, name, why))
			}
		}
	}
	return found
}
