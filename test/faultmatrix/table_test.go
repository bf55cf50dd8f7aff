package faultmatrix

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodeactor/nodeactor/test/standin"
)

// table writes the matrix in Markdown: a line for each child, those that are alike together.
func (m *matrix) table() []byte {
	var b bytes.Buffer
	b.WriteString("| child |")
	for _, f := range faults {
		fmt.Fprintf(&b, " %s |", f.name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(faults)) + "\n")
	var lines []string
	count := map[string]int{}
	for _, n := range m.nodes {
		line := common(n) + " |" + m.cells(n)
		if count[line]++; count[line] == 1 {
			lines = append(lines, line)
		}
	}
	for _, line := range lines {
		name, cells, _ := strings.Cut(line, " |")
		if count[line] > 1 {
			name += fmt.Sprintf(" (%d alike)", count[line])
		}
		fmt.Fprintf(&b, "| %s |%s\n", name, cells)
	}
	fmt.Fprintf(&b, "\n%s\n\n%s", m.coverage(), legend)
	return b.Bytes()
}

// legend explains the words of the table.
const legend = `- **restart**: a new generation, and that of N others with it where it says +N: those the strategy names, with all below them.
- **replaced**: the same, but the generation would not stop: it was abandoned and fenced, and its later effect was refused.
- **goes on**: no fault, no new generation, and nothing is lost. **tries again**: its work failed and was done once the store was well again.
- **backs off**: tried for ten minutes again and again, at the pace of its back-off, and healed when its cause was gone.
- **parked**: as before, but set aside once its budget was spent. **fails X**: the budget of X was spent, so all of X started anew.
- **exit**: the tree ended in order, as the policy says, for its outer supervisor to start it again.
- **–**: it does not apply: a supervisor has no messages and no store of its own; its faults are those its children escalate.
`

func (m *matrix) cells(n *standin.Node) string {
	var b strings.Builder
	for _, f := range faults {
		word := "–"
		if c := m.trials[n.Path][f.name]; c != nil {
			word = c.word()
		}
		fmt.Fprintf(&b, " %s |", word)
	}
	return b.String()
}

// common is the path of a child with what only tells it from others of its kind left out.
func common(n *standin.Node) string {
	if n.Parent == nil {
		return n.Path
	}
	id := n.Path[len(n.Parent.Path):]
	switch {
	case n.Member:
		id = "/*"
	case n.Spec.Row == "controller":
		id = "/*"
	}
	return common(n.Parent) + id
}

func (m *matrix) coverage() string {
	trials, rows := 0, map[string]bool{}
	for _, n := range m.nodes {
		trials += len(m.trials[n.Path])
		rows[n.Spec.Row] = true
	}
	return fmt.Sprintf("%d children of %d rows, %d faults: %d outcomes, %d do not apply.", len(m.nodes), len(rows), len(faults), trials, len(m.nodes)*len(faults)-trials)
}

// figures are the times to repair by fault.
func (m *matrix) figures() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-16s %8s %8s %8s\n", "time to repair", "mean", "p99", "n")
	for _, f := range faults {
		if all := m.repairs(f.name); f.repairs && len(all) > 0 {
			fmt.Fprintf(&b, "%-16s %8s %8s %8d\n", f.name, mean(all).Round(time.Millisecond), p99(all).Round(time.Millisecond), len(all))
		}
	}
	return b.String()
}

// repairs are the times from a fault to the whole tree running again, sorted.
func (m *matrix) repairs(fault string) (all []time.Duration) {
	for _, n := range m.nodes {
		if c := m.trials[n.Path][fault]; c != nil && c.child.Path == n.Path && c.repair > 0 {
			all = append(all, c.repair)
		}
	}
	slices.Sort(all)
	return all
}

func mean(all []time.Duration) (sum time.Duration) {
	for _, d := range all {
		sum += d
	}
	return sum / time.Duration(len(all))
}

func p99(sorted []time.Duration) time.Duration { return sorted[(len(sorted)*99+99)/100-1] }
