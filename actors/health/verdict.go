package health

import (
	"fmt"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// stalledAfter is how long one message may take before its child counts as stalled; the
// watchdog replaces it later, after the catalog's HangAfter. Receive never blocks, so even
// a second would be long.
const stalledAfter = 10 * time.Second

// Verdict is the judgement of one child: nil Reason means alive.
type Verdict struct {
	Name   string
	Reason error
	// Observed is false until the child has been seen running once.
	Observed bool
	// Passing states are on their way to another one and not worth a line in the log.
	Passing bool
	// Alone is set for a member of a pool that is being restarted or set aside: its object's trouble, not the node's.
	Alone bool
	// Port is set for what is only ready while it is alive.
	Port bool
}

// verdicts judges every worker of the tree. The members of a pool are judged only when
// something is wrong with them: there may be very many.
func verdicts(sys *supervision.System, root string) (out []Verdict) {
	sys.Scan("", func(n supervision.Node) bool {
		if n.Supervisor {
			return true
		}
		v := Verdict{Name: short(n.Path, root), Reason: judge(n), Observed: n.Generation > 1 || n.State == core.Running}
		v.Passing = !n.Hung && (n.State == core.Starting || n.State == core.Stopping)
		if v.Reason == nil && pooled(n) {
			return true
		}
		v.Alone = pooled(n) && !n.Hung && n.BusyFor < stalledAfter
		if ports[n.Row] {
			v.asPort(n, sys.Steady())
		}
		out = append(out, v)
		return true
	})
	return out
}

// pooled tells the members of pools from the children that are always there.
func pooled(n supervision.Node) bool { return n.Row == "reconciler" || n.Row == "pod" }

func short(path, root string) string {
	if len(path) > len(root)+1 && path[:len(root)] == root {
		return path[len(root)+1:]
	}
	return path
}

// busyWith names what a stalled child does not come back from.
func busyWith(n supervision.Node) string {
	if n.BusyWith == "" {
		return "a job"
	}
	return fmt.Sprintf("%s for %s", n.BusyWith, n.BusyFor.Round(time.Second))
}

// judge says what is wrong with a child, or nil.
func judge(n supervision.Node) error {
	last := ""
	if f := n.LastFault; f != nil {
		last = fmt.Sprintf(": %s at %s: %v", f.Kind, f.At.UTC().Format(time.RFC3339), f.Err)
	}
	switch {
	case n.Hung || n.BusyFor >= stalledAfter:
		return fmt.Errorf("stalled in %s%s", busyWith(n), last)
	case n.State == core.Running:
		return nil
	}
	return fmt.Errorf("%s%s", n.State, last)
}
