package catalog

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// Effective is what a tree really does with one child, overrides included.
type Effective struct {
	Path  string `json:"path"`
	Row   string `json:"row"`
	Class Class  `json:"class"`
	// Start, Hang and Stop are the child's windows.
	Start Value `json:"start"`
	Hang  Value `json:"hang"`
	Stop  Value `json:"stop"`
	// Restarts and Sustained are the budgets of a supervisor: for a burst, and for longer.
	Strategy  string `json:"strategy,omitempty"`
	Restarts  *Value `json:"restarts,omitempty"`
	Sustained *Value `json:"sustained,omitempty"`
	// On has a cell for each kind of fault, in the catalog's order.
	On []Reaction `json:"on"`
}

// Value is a setting; From says where it was overridden and is empty for the catalog's own.
type Value struct {
	Value string `json:"value"`
	From  string `json:"from,omitempty"`
}

// Reaction is one policy cell as shown to people.
type Reaction struct {
	Fault   string `json:"fault"`
	Do      string `json:"do"`
	Backoff string `json:"backoff,omitempty"`
	From    string `json:"from,omitempty"`
}

// Describe lists what the tree does with each child; overrides are those that were applied
// to it.
func Describe(root *supervision.Spec, overrides []Override) (out []Effective) {
	each(root, root.ID, func(path string, s *supervision.Spec) {
		out = append(out, effective(path, &s.ChildSpec, origin(path, s.Row, overrides)))
	})
	return out
}

// origins says where each part of one child's settings comes from.
type origins struct{ on, start, hang, stop, burst, sustained string }

// origin looks at rows first, because a path beats a row.
func origin(path, row string, overrides []Override) (from origins) {
	for _, byRow := range []bool{true, false} {
		for i := range overrides {
			o := &overrides[i]
			if byRow && o.Row == row || !byRow && o.Path == path {
				from.add(o)
			}
		}
	}
	return from
}

func (f *origins) add(o *Override) {
	set := func(into *string, changed bool) {
		if changed {
			*into = cmp.Or(o.Source, "an override")
		}
	}
	set(&f.on, o.On != nil)
	if w := o.Windows; w != nil {
		set(&f.start, w.Start != "")
		set(&f.hang, w.Hang != "")
		set(&f.stop, w.Stop != "")
	}
	if r := o.Restarts; r != nil {
		set(&f.burst, r.Burst != nil)
		set(&f.sustained, r.Sustained != nil)
	}
}

func effective(path string, s *core.ChildSpec, from origins) Effective {
	e := Effective{
		Path: path, Row: s.Row, Class: classOf(s.Row), Start: Value{short(s.StartTimeout), from.start},
		Hang: Value{short(s.HangAfter), from.hang}, Stop: Value{short(s.StopTimeout), from.stop},
	}
	for k, cell := range s.Policy {
		e.On = append(e.On, Reaction{kindNames[k], cell.Do.String(), curveText(cell.Backoff), from.on})
	}
	if s.Kind == core.Supervisor {
		e.Strategy = s.Group.Strategy.String()
		e.Restarts, e.Sustained = &Value{rateText(s.Group.Intensity), from.burst}, &Value{rateText(s.Group.Sustained), from.sustained}
	}
	return e
}

func classOf(row string) Class {
	e, _ := find(row)
	return e.Class
}

func rateText(i core.Intensity) string { return fmt.Sprintf("%d/%s", i.Max, short(i.Within)) }

func curveText(b core.Backoff) string {
	if b == (core.Backoff{}) {
		return ""
	}
	return fmt.Sprintf("initial %s, factor %g, cap %s, jitter %g, reset %s", short(b.Initial), b.Factor, short(b.Cap), b.Jitter, short(b.Reset))
}

// PrintEffective writes a table of the list. Curves have letters that are explained below
// it, and what was overridden a number that says where.
func PrintEffective(w io.Writer, list []Effective) error {
	curves, sources := &notes[string]{}, &notes[string]{}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PATH\tROW\tSTART\tHANG\tSTOP\tSTRATEGY\tRESTARTS\tSUSTAINED\tPANIC\tHANG\tERROR\tBIND")
	for _, e := range list {
		cells := []string{e.Path, e.Row, mark(e.Start, sources), mark(e.Hang, sources), mark(e.Stop, sources), cmp.Or(e.Strategy, "-")}
		for _, budget := range []*Value{e.Restarts, e.Sustained} {
			cells = append(cells, markOr(budget, sources))
		}
		for _, r := range e.On {
			cells = append(cells, mark(Value{cellText(r.Do, curves.number(r.Backoff)), r.From}, sources))
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	legend(t, curves, sources)
	return t.Flush()
}

func legend(t io.Writer, curves, sources *notes[string]) {
	fmt.Fprintln(t)
	for i, c := range curves.seen {
		fmt.Fprintf(t, "%s  %s\n", letter(i+1), c)
	}
	if len(sources.seen) == 0 {
		fmt.Fprintln(t, "nothing is overridden")
	}
	for i, s := range sources.seen {
		fmt.Fprintf(t, "[%d]  overridden by %s\n", i+1, s)
	}
}

// mark adds the number of the source to a value that was overridden.
func mark(v Value, sources *notes[string]) string {
	if n := sources.number(v.From); n > 0 {
		return fmt.Sprintf("%s [%d]", v.Value, n)
	}
	return v.Value
}

// markOr is mark for a value that not every child has.
func markOr(v *Value, sources *notes[string]) string {
	if v == nil {
		return "-"
	}
	return mark(*v, sources)
}
