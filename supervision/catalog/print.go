package catalog

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/nodeactor/nodeactor/supervision/core"
)

// Print writes every row with all its windows and policy cells: first the children, then the
// budgets of the groups, then the curves the cells refer to.
func Print(w io.Writer) error {
	curves := &curveNames{}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ROW\tCLASS\tRESTART\tSTART\tHANG\tSTOP\tMAILBOX\tPANIC\tHANG\tERROR\tBIND\tDOES")
	for _, e := range Rows {
		s := e.Spec
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%d %s\t", s.Row, e.Class, s.Restart, s.StartTimeout, s.HangAfter, s.StopTimeout, s.Mailbox.Limit, s.Mailbox.Overflow)
		for _, cell := range s.Policy {
			fmt.Fprintf(t, "%s\t", curves.cell(cell))
		}
		fmt.Fprintln(t, e.Does)
	}
	fmt.Fprintln(t, "\nGROUP\tSTRATEGY\tBURST\tWITHIN\tSUSTAINED\tWITHIN\tABANDONED")
	for _, e := range Rows {
		if g := e.Spec.Group; e.Spec.Kind == core.Supervisor {
			fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%d\t%s\t%d\n",
				e.Spec.Row, g.Strategy, g.Intensity.Max, g.Intensity.Within, g.Sustained.Max, g.Sustained.Within, g.MaxAbandoned)
		}
	}
	fmt.Fprintln(t, "\nCURVE\tINITIAL\tFACTOR\tCAP\tJITTER\tRESET")
	for i, b := range curves.seen {
		fmt.Fprintf(t, "%s\t%s\t%g\t%s\t%g\t%s\n", curveName(i), b.Initial, b.Factor, b.Cap, b.Jitter, b.Reset)
	}
	return t.Flush()
}

// curveNames gives each different curve a letter, in the order of appearance.
type curveNames struct{ seen []core.Backoff }

func curveName(i int) string { return strings.ToUpper(string(rune('a' + i))) }

func (c *curveNames) cell(r core.Reaction) string {
	if r.Backoff == (core.Backoff{}) {
		return r.Do.String()
	}
	for i, b := range c.seen {
		if b == r.Backoff {
			return r.Do.String() + " " + curveName(i)
		}
	}
	c.seen = append(c.seen, r.Backoff)
	return c.cell(r)
}
