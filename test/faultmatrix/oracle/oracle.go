// Package oracle says what the catalog declares to come of a fault: who starts anew with whom,
// and when a budget is used up. It reads policy cells, strategies, budgets and back-offs, and
// shares no code with the kernel that carries them out.
package oracle

import (
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
	"github.com/nodeactor/nodeactor/test/standin"
)

// Fate is what the catalog declares to come of one fault.
type Fate struct {
	// Moves tells by how much each generation moves. Who is in Anew gets another generation,
	// whichever: members of a pool that starts anew are new members.
	Moves map[string]uint64
	Anew  map[string]bool
	// Dead children stay down, Exit ends the tree.
	Dead map[string]bool
	Exit bool
}

// Untouched is the fate of what is no fault.
func Untouched() Fate {
	return Fate{Moves: map[string]uint64{}, Anew: map[string]bool{}, Dead: map[string]bool{}}
}

// Restarted adds one generation for n and everything below it.
func (f Fate) Restarted(n *standin.Node) {
	f.Moves[n.Path]++
	for _, kid := range n.Kids {
		if f.Restarted(kid); kid.Member {
			f.Anew[kid.Path] = true
		}
	}
}

func (f Fate) died(n *standin.Node) {
	f.Dead[n.Path] = true
	for _, kid := range n.Kids {
		f.died(kid)
	}
}

// ByHand is the fate of a child that a person restarts: that of its strategy.
func ByHand(n *standin.Node) Fate {
	f := Untouched()
	for _, s := range sharing(n) {
		f.Restarted(s)
	}
	return f
}

// sharing lists who shares the fate of n by the strategy above it, n included.
func sharing(n *standin.Node) []*standin.Node {
	siblings := n.Parent.Kids
	switch n.Parent.Spec.Group.Strategy {
	case core.OneForAll:
		return siblings
	case core.RestForOne:
		return siblings[n.Index:]
	}
	return []*standin.Node{n}
}

// OfFault is the fate after one fault of a kind, within every budget.
func OfFault(n *standin.Node, kind supervision.FaultKind) Fate {
	f := Untouched()
	if n.Parent == nil {
		f.Exit = true
		return f
	}
	switch cell := n.Spec.Policy[kind]; {
	case cell.Do == core.DoEscalate:
		return OfFault(n.Parent, kind)
	case cell.Do == core.DoStop || n.Spec.Restart == core.Temporary:
		f.died(n)
	case cell.Do == core.DoPark || kind == supervision.BindFailure:
		f.Restarted(n)
	default:
		return ByHand(n)
	}
	return f
}

// CrashLoop is what comes of a child that fails of the same thing again and again.
type CrashLoop struct {
	// Failed are the supervisors that ran out of budget, Parked tells that a member did.
	Failed map[string]bool
	Parked bool
	Exit   bool
}

// Loop follows a child that panics each time it has run for uptime, until the horizon, with
// back-offs without jitter.
func Loop(n *standin.Node, uptime, horizon time.Duration) CrashLoop {
	l := &looper{CrashLoop: CrashLoop{Failed: map[string]bool{}}, lives: map[*standin.Node]*life{}}
	for now := time.Duration(0); now <= horizon && !l.Exit; {
		now = l.fail(n, now) + uptime
	}
	return l.CrashLoop
}

// life is what is remembered of a child as long as its supervisor lives: when it came up, its
// failures in a row, and the restarts that its budget still counts.
type life struct {
	up       time.Duration
	failures int
	restarts []time.Duration
}

type looper struct {
	CrashLoop
	lives map[*standin.Node]*life
}

func (l *looper) of(n *standin.Node) *life {
	if l.lives[n] == nil {
		l.lives[n] = &life{up: -time.Hour}
	}
	return l.lives[n]
}

// fail is the failure of n at now; it returns when n runs again.
func (l *looper) fail(n *standin.Node, now time.Duration) time.Duration {
	if n.Parent == nil {
		l.Exit = true
		return now
	}
	cell, me := n.Spec.Policy[supervision.Panic], l.of(n)
	if now-me.up >= cell.Backoff.Reset {
		me.failures = 0
	}
	me.failures++
	payer, group := n, n.Parent.Spec.Group
	if !n.Member {
		payer = n.Parent
	}
	wait := delay(cell.Backoff, me.failures)
	switch {
	case cell.Do == core.DoEscalate:
		return l.failAbove(n, now)
	case l.pay(payer, group, now):
	case n.Member:
		l.Parked, wait = true, cell.Backoff.Cap
	default:
		return l.failAbove(n, now)
	}
	me.up = now + wait
	return me.up
}

// failAbove fails the supervisor of n, which forgets everything about its children.
func (l *looper) failAbove(n *standin.Node, now time.Duration) time.Duration {
	l.Failed[n.Parent.Path] = true
	l.of(n.Parent).restarts = nil
	delete(l.lives, n)
	again := l.fail(n.Parent, now)
	l.of(n).up = again
	return again
}

// pay takes a restart out of both budgets, unless one of them is used up.
func (l *looper) pay(payer *standin.Node, g core.GroupSpec, now time.Duration) bool {
	me := l.of(payer)
	for _, in := range budgets(g) {
		used := 0
		for _, at := range me.restarts {
			if now-at < in.Within {
				used++
			}
		}
		if used >= in.Max {
			return false
		}
	}
	me.restarts = append(me.restarts, now)
	return true
}

func budgets(g core.GroupSpec) []core.Intensity { return []core.Intensity{g.Intensity, g.Sustained} }

// delay is the wait after so many failures in a row.
func delay(b core.Backoff, failures int) time.Duration {
	d := float64(b.Initial)
	for range failures - 1 {
		d = min(d*b.Factor, float64(b.Cap))
	}
	return time.Duration(d)
}
