package faultmatrix

import (
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
	"github.com/nodeactor/nodeactor/test/standin"
)

// fate is what the catalog declares to come of one fault.
type fate struct {
	// moves tells by how much each generation moves. Who is in anew gets another generation,
	// whichever: members of a pool that starts anew are new members.
	moves map[string]uint64
	anew  map[string]bool
	// dead children stay down, exit ends the tree.
	dead map[string]bool
	exit bool
}

func newFate() fate {
	return fate{moves: map[string]uint64{}, anew: map[string]bool{}, dead: map[string]bool{}}
}

// restarted adds one generation for n and everything below it.
func (f fate) restarted(n *standin.Node) {
	f.moves[n.Path]++
	for _, kid := range n.Kids {
		if f.restarted(kid); kid.Member {
			f.anew[kid.Path] = true
		}
	}
}

func (f fate) died(n *standin.Node) {
	f.dead[n.Path] = true
	for _, kid := range n.Kids {
		f.died(kid)
	}
}

// byHand is the fate of a child that a person restarts: that of its strategy.
func byHand(n *standin.Node) fate {
	f := newFate()
	for _, s := range sharing(n) {
		f.restarted(s)
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

// ofFault is the fate after one fault of a kind, within every budget.
func ofFault(n *standin.Node, kind supervision.FaultKind) fate {
	f := newFate()
	if n.Parent == nil {
		f.exit = true
		return f
	}
	switch cell := n.Spec.Policy[kind]; {
	case cell.Do == core.DoEscalate:
		return ofFault(n.Parent, kind)
	case cell.Do == core.DoStop || n.Spec.Restart == core.Temporary:
		f.died(n)
	case cell.Do == core.DoPark || kind == supervision.BindFailure:
		f.restarted(n)
	default:
		return byHand(n)
	}
	return f
}

// crashLoop is what comes of a child that fails of the same thing again and again.
type crashLoop struct {
	// failed are the supervisors that ran out of budget, parked tells that a member did.
	failed map[string]bool
	parked bool
	exit   bool
}

// loop follows a child that panics each time it has run for uptime, until the horizon, with
// back-offs without jitter.
func loop(n *standin.Node, uptime, horizon time.Duration) crashLoop {
	l := &looper{crashLoop: crashLoop{failed: map[string]bool{}}, lives: map[*standin.Node]*life{}}
	for now := time.Duration(0); now <= horizon && !l.exit; {
		now = l.fail(n, now) + uptime
	}
	return l.crashLoop
}

// life is what is remembered of a child as long as its supervisor lives: when it came up, its
// failures in a row, and the restarts that its budget still counts.
type life struct {
	up       time.Duration
	failures int
	restarts []time.Duration
}

type looper struct {
	crashLoop
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
		l.exit = true
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
		l.parked, wait = true, cell.Backoff.Cap
	default:
		return l.failAbove(n, now)
	}
	me.up = now + wait
	return me.up
}

// failAbove fails the supervisor of n, which forgets everything about its children.
func (l *looper) failAbove(n *standin.Node, now time.Duration) time.Duration {
	l.failed[n.Parent.Path] = true
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
