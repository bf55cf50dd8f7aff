package main

import (
	"bytes"
	"fmt"
	"strings"
)

// heading begins the page.
const heading = `# Features

What nodeactor offers, row by row, and which test proves it. This page is generated: the rows are in
` + "`test/features/rows.yaml`" + `, and ` + "`make features`" + ` writes it anew.

A row is *proved* when tests show it as it is worded here, what follows *Also* included: those whose names begin with its
number, and those that the row names. ` + "`make test`" + ` fails when such a test is missing, fails, is skipped or does not run.
Every other row is *open*, with the reason; tests listed there prove a part of it.

`

// chapters are the groups of rows, by the last number of each.
var chapters = []struct {
	last  int
	title string
}{
	{39, "The Kubernetes API, controllers and scheduler"},
	{60, "Supervision and health"},
	{63, "Kubelet"},
	{68, "The etcd API"},
	{82, "Boot, shutdown, certificates, manifests"},
	{89, "Configuration and management"},
	{101, "Operators"},
	{128, "Replica-set strategies"},
}

// render writes the page.
func render(rows []row, tests names) []byte {
	var out bytes.Buffer
	out.WriteString(heading)
	summary(&out, rows)
	chapter := 0
	for i, r := range rows {
		if i == 0 || i == chapters[chapter].last {
			if i > 0 {
				chapter++
			}
			fmt.Fprintf(&out, "\n## %s\n", chapters[chapter].title)
		}
		r.render(&out, tests)
	}
	return out.Bytes()
}

// summary counts the rows of each chapter and names the open ones.
func summary(out *bytes.Buffer, rows []row) {
	out.WriteString("| rows | of | proved | open |\n|---|---|---|---|\n")
	first, proved := 0, 0
	for _, c := range chapters {
		group := rows[first:c.last]
		claimed := count(group)
		fmt.Fprintf(out, "| F%03d–F%03d | %s | %d of %d | %s |\n", first+1, c.last, c.title, claimed, len(group), openOnes(group))
		first, proved = c.last, proved+claimed
	}
	fmt.Fprintf(out, "| | all | %d of %d | %d |\n", proved, len(rows), len(rows)-proved)
}

func openOnes(rows []row) string {
	var open []string
	for _, r := range rows {
		if r.Open != "" {
			open = append(open, r.Row)
		}
	}
	if len(open) == 0 {
		return "–"
	}
	return strings.Join(open, " ")
}

func (r row) render(out *bytes.Buffer, tests names) {
	state := "proved"
	if r.Open != "" {
		state = "open"
	}
	fmt.Fprintf(out, "\n### %s %s: %s\n\n%s\n", r.Row, r.Feature, state, r.Seen)
	if r.Also != "" {
		fmt.Fprintf(out, "\n*Also*: %s\n", r.Also)
	}
	if r.Open != "" {
		fmt.Fprintf(out, "\n- **Open**: %s\n", r.Open)
	}
	proofs := r.tests(tests)
	if len(proofs)+len(r.Longer) > 0 {
		out.WriteString("\n")
	}
	for _, name := range proofs {
		listTest(out, name, "")
	}
	for _, name := range r.Longer {
		full, _ := tests.full(name)
		listTest(out, full, ", when it is asked for")
	}
}

func listTest(out *bytes.Buffer, name, when string) {
	at := strings.LastIndexByte(name, '.')
	fmt.Fprintf(out, "- `%s` in `%s`%s\n", name[at+1:], name[:max(at, 0)], when)
}
