package supervisionrest

import (
	"context"
	"fmt"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	api "github.com/nodeactor/nodeactor/actors/apiserver/supervisionapi"
)

// none fills a cell that has nothing to say.
const none = "<none>"

func column(name, kind, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: kind, Description: description}
}

// wide is a column that only the wide form has.
func wide(name, kind, description string) metav1.TableColumnDefinition {
	c := column(name, kind, description)
	c.Priority = 1
	return c
}

// path is the column that names the object.
func path() metav1.TableColumnDefinition {
	c := column("Path", "string", "Name of the object: the path with : for /.")
	c.Format = "name"
	return c
}

func (actors) columns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		path(),
		column("Kind", "string", "Row of the catalog."),
		column("State", "string", "Where the actor is in its life, and whether it hangs."),
		column("Gen", "integer", "Number of the present life."),
		column("Restarts", "integer", "How often it was started again."),
		column("Mailbox", "integer", "Messages that wait."),
		column("Oldest", "string", "How long the oldest of them has waited."),
		column("LastFault", "string", "What went wrong last, and when."),
		column("Age", "string", "How long it has been in its state."),
		wide("Stack", "string", "Short name of the last fault's cause."),
		wide("NextTry", "string", "When it is started again."),
		wide("CPU", "string", "Share of one core when it was last measured."),
	}
}

func (actors) cells(o object, now time.Time) []any {
	a := o.(*api.Actor)
	s := &a.Status
	state, oldest, fault, stack := string(s.State), none, none, none
	if s.Hung {
		state += ",Hung"
	}
	if s.Mailbox.Oldest != nil {
		oldest = duration.HumanDuration(s.Mailbox.Oldest.Duration)
	}
	if f := s.LastFault; f != nil {
		fault, stack = fmt.Sprintf("%s (%s ago)", f.Kind, duration.HumanDuration(now.Sub(f.At.Time))), orNone(f.StackHash)
	}
	return []any{
		a.Name, orNone(a.Spec.Row), state, s.Generation, s.Restarts, s.Mailbox.Depth, oldest, fault, age(s.Since, now),
		stack, until(s.NextTry, now), orNone(s.CPU),
	}
}

func (policies) columns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		path(),
		column("Kind", "string", "Row of the catalog."),
		column("Panic", "string", "Reaction to a panic."),
		column("Hang", "string", "Reaction to a hang."),
		column("Error", "string", "Reaction to a returned error."),
		column("Bind", "string", "Reaction to an address that cannot be had."),
		column("Strategy", "string", "Which siblings share a child's fate."),
		column("Budget", "string", "Restarts that are borne in a burst."),
		column("Overridden", "boolean", "Whether it differs from the catalog."),
		wide("Restart", "string", "After which end it is started again."),
		wide("Start", "string", "How long a start may take."),
		wide("HangAfter", "string", "How long one message may take."),
		wide("Stop", "string", "How long a stop may take."),
		wide("Overrides", "string", "Fields that differ from the catalog."),
	}
}

func (policies) cells(o object, _ time.Time) []any {
	p := o.(*api.FaultPolicy)
	s, do := &p.Spec, &p.Spec.Reactions
	strategy, budget := none, none
	if g := s.Group; g != nil {
		strategy, budget = g.Strategy, fmt.Sprintf("%d in %s", g.Burst.Max, duration.HumanDuration(g.Burst.Within.Duration))
	}
	return []any{
		p.Name, orNone(s.Row), do.Panic.Do, do.Hang.Do, do.ErrorReturn.Do, do.BindFailure.Do, strategy, budget, p.Status.Overridden,
		s.Restart, brief(s.StartTimeout), brief(s.HangAfter), brief(s.StopTimeout), orNone(strings.Join(p.Status.Overrides, ",")),
	}
}

func brief(d metav1.Duration) string { return duration.HumanDuration(d.Duration) }

func orNone(s string) string {
	if s == "" {
		return none
	}
	return s
}

func age(t *metav1.Time, now time.Time) string {
	if t == nil {
		return none
	}
	return duration.HumanDuration(now.Sub(t.Time))
}

func until(t *metav1.Time, now time.Time) string {
	if t == nil {
		return none
	}
	return duration.HumanDuration(max(t.Sub(now), 0))
}

// ConvertToTable implements rest.TableConvertor.
func (s *storage) ConvertToTable(_ context.Context, obj runtime.Object, options runtime.Object) (*metav1.Table, error) {
	table, now := &metav1.Table{}, s.tree.Clock().Now()
	if opts, ok := options.(*metav1.TableOptions); !ok || !opts.NoHeaders {
		table.ColumnDefinitions = s.columns()
	}
	row := func(o runtime.Object) error {
		table.Rows = append(table.Rows, metav1.TableRow{Cells: s.cells(o.(object), now), Object: runtime.RawExtension{Object: o}})
		return nil
	}
	if list, ok := obj.(metav1.ListInterface); ok {
		table.ResourceVersion, table.Continue = list.GetResourceVersion(), list.GetContinue()
		return table, apimeta.EachListItem(obj, row)
	}
	table.ResourceVersion = obj.(object).GetResourceVersion()
	return table, row(obj)
}
