package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// loaded is the module's own rows and tests.
func loaded(t *testing.T) (string, []row, names) {
	t.Helper()
	root, rows, tests, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return root, rows, tests
}

// TestEveryClaimHasATest is what must hold without a run: rows that are whole, claims with tests, tests that exist.
func TestEveryClaimHasATest(t *testing.T) {
	_, rows, tests := loaded(t)
	if len(tests) < 500 {
		t.Fatalf("only %d tests were found", len(tests))
	}
	for _, fault := range faults(rows, tests) {
		t.Error(fault)
	}
}

// TestThePageIsUpToDate: `make features` writes it anew.
func TestThePageIsUpToDate(t *testing.T) {
	root, rows, tests := loaded(t)
	got, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	have, want := strings.Split(string(got), "\n"), strings.Split(string(render(rows, tests)), "\n")
	for i := range max(len(have), len(want)) {
		if i >= len(have) || i >= len(want) || have[i] != want[i] {
			t.Fatalf("%s is not what `make features` writes: line %d should be %q, is %q", page, i+1, at(want, i), at(have, i))
		}
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "missing"
}

// small is a table of features with tests for some.
func small() ([]row, names) {
	rows := []row{
		{Row: "F001", Feature: "a", Seen: "a"},
		{Row: "F002", Feature: "b", Seen: "b", Tests: []string{"p.TestOther"}},
		{Row: "F003", Feature: "c", Seen: "c", Open: "not yet"},
	}
	return rows, names{"p.TestF001_A": true, "q/r.TestF001_B": true, "p.TestOther": true}
}

func TestWrongTablesAreFoundOut(t *testing.T) {
	for want, change := range map[string]func(rows []row, tests names){
		"F001 (a) is claimed and has no test": func(_ []row, tests names) { delete(tests, "p.TestF001_A"); delete(tests, "q/r.TestF001_B") },
		"F002 names the test TestTwo, which may be each of p.TestTwo, q.TestTwo": func(rows []row, tests names) {
			tests["p.TestTwo"], tests["q.TestTwo"], rows[1].Tests = true, true, []string{"TestTwo"}
		},
		"F002 names the test p.TestOther, which does not exist": func(_ []row, tests names) { delete(tests, "p.TestOther") },
		"F003 (c) is claimed and has no test":                   func(rows []row, _ names) { rows[2].Open = "" },
		"p.TestF004_A is named after a row":                     func(_ []row, tests names) { tests["p.TestF004_A"] = true },
		"p.TestF1_A is named after a row":                       func(_ []row, tests names) { tests["p.TestF1_A"] = true },
		`row "F007" is in the place of F002`:                    func(rows []row, _ names) { rows[1].Row = "F007" },
		"F001 (a) is claimed and has no test: name one": func(rows []row, _ names) {
			rows[0].Longer = []string{"TestF001_A", "q/r.TestF001_B"}
		},
		"F001 names the test TestNone": func(rows []row, _ names) { rows[0].Longer = []string{"TestNone"} },
		"F001 does not say what it is": func(rows []row, _ names) { rows[0].Seen = "" },
		"there are 3 rows, want 128":   func([]row, names) {},
	} {
		rows, tests := small()
		change(rows, tests)
		if err := errors.Join(faults(rows, tests)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if rows, tests := small(); len(faults(rows, tests)) != 1 {
		t.Errorf("a good table has faults: %v", faults(rows, tests))
	}
	rows, tests := small()
	if rows[1].Tests[0] = "TestOther"; fmt.Sprint(rows[1].tests(tests)) != "[p.TestOther]" {
		t.Errorf("a name without its folder means %v", rows[1].tests(tests))
	}
	if _, err := parseRows([]byte("- {row: F001, test: [x]}")); err == nil {
		t.Error("a field that does not exist is read")
	}
}

// ran is what `go test -json` says of tests: action, package and name.
func ran(lines ...string) string {
	var out strings.Builder
	for _, l := range lines {
		f := strings.Fields(l)
		out.WriteString(`{"Action":"` + f[0] + `","Package":"` + modulePath + f[1] + `","Test":"` + f[2] + "\"}\n")
	}
	return out.String()
}

func TestClaimsNeedTestsThatPassed(t *testing.T) {
	good := []string{"pass p TestF001_A/part", "pass p TestF001_A", "pass q/r TestF001_B", "pass p TestOther"}
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"all passed":              {good, ""},
		"one failed":              {append([]string{"fail p TestOther"}, good...), "p.TestOther failed"},
		"one was skipped":         {append(good[:3:3], "skip p TestOther"), "p.TestOther was skipped"},
		"one did not run":         {good[:3], "p.TestOther was not run"},
		"a part was skipped":      {append(good[:3:3], "skip p TestOther/x", "pass p TestOther/y", "pass p TestOther"), "p.TestOther was skipped"},
		"a part failed":           {append(good[:3:3], "fail p TestOther/x", "fail p TestOther"), "p.TestOther failed"},
		"skipped here, ran there": {append(good[:3:3], "skip p TestOther/x", "pass p TestOther", "pass p TestOther"), ""},
	} {
		results := map[string]result{}
		if err := addResults(results, strings.NewReader(ran(c.lines...))); err != nil {
			t.Fatal(err)
		}
		rows, tests := small()
		err := errors.Join(unproved(rows, tests, results)...)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	if err := addResults(map[string]result{}, strings.NewReader("no JSON\n")); err == nil {
		t.Error("a line that is no result is passed over")
	}
}

const stream = `{"Action":"start","Package":"p"}
{"Action":"output","Package":"p","Test":"TestGood","Output":"=== RUN   TestGood\n"}
{"Action":"output","Package":"p","Test":"TestGood","Output":"chatter\n"}
{"Action":"pass","Package":"p","Test":"TestGood"}
{"Action":"output","Package":"p","Test":"TestSkipped","Output":"    x_test.go:1: needs root\n"}
{"Action":"skip","Package":"p","Test":"TestSkipped"}
{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
{"Action":"pass","Package":"p"}
`

const failing = `{"Action":"output","Package":"q","Test":"TestBad","Output":"=== RUN   TestBad\n"}
{"Action":"output","Package":"q","Test":"TestBad","Output":"first\n"}
{"Action":"output","Package":"q","Test":"TestBad/part","Output":"second\n"}
{"Action":"fail","Package":"q","Test":"TestBad/part"}
{"Action":"output","Package":"q","Test":"TestBad","Output":"third\n"}
{"Action":"fail","Package":"q","Test":"TestBad"}
{"Action":"output","Package":"q","Output":"FAIL\tq\t0.1s\n"}
{"Action":"fail","Package":"q"}
{"ImportPath":"r","Action":"build-output","Output":"r.go:1: no\n"}
{"ImportPath":"r","Action":"build-fail"}
{"Action":"output","Package":"s","Output":"never ended\n"}
`

func TestShownIsWhatAPersonReads(t *testing.T) {
	for _, c := range []struct {
		stream  string
		verbose bool
		want    string
		good    bool
	}{
		{stream, false, "    x_test.go:1: needs root\nok  \tp\t0.1s\n", true},
		{stream, true, "=== RUN   TestGood\nchatter\n    x_test.go:1: needs root\nPASS\nok  \tp\t0.1s\n", true},
		{failing, false, "first\nsecond\nthird\nFAIL\tq\t0.1s\nr.go:1: no\nnever ended\n", false},
	} {
		var shown, kept bytes.Buffer
		err := show(strings.NewReader(c.stream), &shown, &kept, c.verbose)
		if shown.String() != c.want || (err == nil) != c.good {
			t.Errorf("shows %q, %v, want %q", shown.String(), err, c.want)
		}
		results := map[string]result{}
		if err := addResults(results, &kept); err != nil {
			t.Error(err)
		}
		if c.good && (!results["p.TestGood"].passed || !results["p.TestSkipped"].skipped) || !c.good && !results["q.TestBad"].failed {
			t.Errorf("keeps %+v", results)
		}
	}
}
