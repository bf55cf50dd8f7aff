package catalog

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/nodeactor/nodeactor/supervision/core"
)

// Print writes every row with all its windows and policy cells: first the children, then the
// budgets of the groups, then the curves the cells refer to.
func Print(w io.Writer) error {
	curves := &notes[core.Backoff]{}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ROW\tCLASS\tRESTART\tSTART\tHANG\tSTOP\tMAILBOX\tPANIC\tHANG\tERROR\tBIND\tDOES")
	for _, e := range everyRow() {
		s := e.Spec
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%d %s\t", s.Row, e.Class, s.Restart, s.StartTimeout, s.HangAfter, s.StopTimeout, s.Mailbox.Limit, s.Mailbox.Overflow)
		for _, cell := range s.Policy {
			fmt.Fprintf(t, "%s\t", cellText(cell.Do.String(), curves.number(cell.Backoff)))
		}
		fmt.Fprintln(t, e.Does)
	}
	fmt.Fprintln(t, "\nGROUP\tSTRATEGY\tBURST\tWITHIN\tSUSTAINED\tWITHIN\tABANDONED")
	for _, e := range everyRow() {
		if g := e.Spec.Group; e.Spec.Kind == core.Supervisor {
			fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%d\t%s\t%d\n",
				e.Spec.Row, g.Strategy, g.Intensity.Max, g.Intensity.Within, g.Sustained.Max, g.Sustained.Within, g.MaxAbandoned)
		}
	}
	fmt.Fprintln(t, "\nCURVE\tINITIAL\tFACTOR\tCAP\tJITTER\tRESET")
	for i, b := range curves.seen {
		fmt.Fprintf(t, "%s\t%s\t%g\t%s\t%g\t%s\n", letter(i+1), b.Initial, b.Factor, b.Cap, b.Jitter, b.Reset)
	}
	return t.Flush()
}

// cellText is a policy cell with the letter of its curve, if it has one.
func cellText(do string, curve int) string { return strings.TrimSpace(do + " " + letter(curve)) }

// notes numbers different values from 1, in the order of appearance; the zero value is 0.
type notes[T comparable] struct{ seen []T }

func (n *notes[T]) number(v T) int {
	var none T
	if v == none {
		return 0
	}
	i := slices.Index(n.seen, v)
	if i < 0 {
		i = len(n.seen)
		n.seen = append(n.seen, v)
	}
	return i + 1
}

// letter names a curve: A, B, ... Z, AA.
func letter(n int) (s string) {
	for ; n > 0; n = (n - 1) / 26 {
		s = string(rune('A'+(n-1)%26)) + s
	}
	return s
}
