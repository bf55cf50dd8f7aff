package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
	"github.com/nodeactor/nodeactor/test/harness"
	"github.com/nodeactor/nodeactor/test/standin"
)

// rules are what must hold after each change.
type rules struct {
	k     *harness.Kit
	world *standin.World
	root  *standin.Node
	nodes map[string]*standin.Node
	// state and broken are those of each child: broken is the kind of the fault that it waits
	// after. gen is the generation last started.
	state  map[string]core.State
	broken map[string]supervision.FaultKind
	gen    map[string]uint64
	// down counts the declared children that do not run.
	down int
	// spent is when restarts were paid for, by who pays: a supervisor, or a member of a pool.
	spent     map[string][]time.Time
	abandoned int
	// hidden is how many restarts of the root's children may have been paid for unseen.
	hidden  int
	effects map[string]uint64
	// seen are the states that some child has been in.
	seen map[core.State]bool
}

func newRules(k *harness.Kit, w *standin.World, nodes []*standin.Node) *rules {
	r := &rules{
		k: k, world: w, root: nodes[0], nodes: map[string]*standin.Node{}, state: map[string]core.State{}, gen: map[string]uint64{},
		broken: map[string]supervision.FaultKind{}, spent: map[string][]time.Time{}, effects: map[string]uint64{}, seen: map[core.State]bool{}, down: len(nodes) - 1,
	}
	for _, n := range nodes {
		r.nodes[n.Path] = n
	}
	fences := map[string][]supervision.Fence{}
	w.Begun = func(path string, f supervision.Fence) { r.oneUnfenced(path, fences, f) }
	w.Store.Taken = r.effect
	return r
}

func (r *rules) watch(s *supervision.System) { s.Watch(r.changed) }

// oneUnfenced holds that a generation begins only when all before it are fenced.
func (r *rules) oneUnfenced(path string, all map[string][]supervision.Fence, f supervision.Fence) {
	for _, old := range all[path] {
		if old.Check() == nil {
			r.k.Errorf("%s begins while an older generation is not fenced", path)
		}
	}
	all[path] = append(all[path][:0], f)
}

// effect holds that no generation has an effect after a younger one had one.
func (r *rules) effect(path string, gen uint64) {
	if gen < r.effects[path] {
		r.k.Errorf("generation %d of %s has an effect after %d", gen, path, r.effects[path])
	}
	r.effects[path] = gen
}

// changed is called for each change of a child's state.
func (r *rules) changed(c supervision.Change) {
	n := r.nodes[c.Path]
	if n != nil && n != r.root {
		r.count(r.state[c.Path], c.To)
	}
	if c.Abandoned {
		r.abandoned++
	}
	switch c.To {
	case core.Starting:
		r.starts(c, n)
	case core.Stopping:
		r.stops(c, n)
	case core.BackingOff:
		r.waits(c, n)
	}
	r.state[c.Path], r.seen[c.To] = c.To, true
}

func (r *rules) count(from, to core.State) {
	if from == core.Running {
		r.down++
	}
	if to == core.Running {
		r.down--
	}
}

// starts holds that generations go up, and that in an ordered group a child starts only when
// its elders have.
func (r *rules) starts(c supervision.Change, n *standin.Node) {
	if c.Generation <= r.gen[c.Path] {
		r.k.Errorf("%s starts generation %d after %d", c.Path, c.Generation, r.gen[c.Path])
	}
	r.gen[c.Path] = c.Generation
	if c.From == core.Idle {
		r.forgiven(c.Path) // a new member has spent nothing
	}
	if delete(r.spent, c.Path); n == nil || !ordered(n) {
		return
	}
	for _, elder := range n.Parent.Kids[:n.Index] {
		switch s := r.state[elder.Path]; {
		case s == core.Running, s == core.Parked, s == core.Dead, s == core.Done:
		case s == core.BackingOff && r.broken[elder.Path] == supervision.BindFailure:
		default:
			r.k.Errorf("%s starts while its elder %s is %v", c.Path, elder.Path, s)
		}
	}
}

// stops holds that in an ordered group a child stops only when its youngers have, and no other
// at the same time. A taken address concerns nobody else.
func (r *rules) stops(c supervision.Change, n *standin.Node) {
	if n == nil || !ordered(n) {
		return
	}
	alone := c.Fault != nil && c.Fault.Kind == supervision.BindFailure
	for _, s := range n.Parent.Kids {
		state := r.state[s.Path]
		switch {
		case s == n:
		case state == core.Stopping:
			r.k.Errorf("%s and %s stop at the same time", c.Path, s.Path)
		case s.Index > n.Index && (state == core.Running || state == core.Starting) && !alone:
			r.k.Errorf("%s stops while its younger sibling %s is %v", c.Path, s.Path, state)
		}
	}
}

func ordered(n *standin.Node) bool {
	return n.Parent != nil && !n.Member && n.Parent.Spec.Group.Strategy == core.RestForOne
}

// waits notes a restart that was granted, and holds that both budgets bear it.
func (r *rules) waits(c supervision.Change, n *standin.Node) {
	if c.Fault == nil {
		r.k.Errorf("%s waits without a fault", c.Path)
		return
	}
	if r.broken[c.Path] = c.Fault.Kind; n == nil || c.Fault.Kind == supervision.BindFailure {
		return
	}
	payer := n.Parent.Path
	if n.Member {
		payer = "of " + n.Path
	}
	r.spent[payer] = append(r.spent[payer], c.At)
	for _, in := range []core.Intensity{n.Parent.Spec.Group.Intensity, n.Parent.Spec.Group.Sustained} {
		if used := within(r.spent[payer], c.At, in.Within); used > in.Max {
			r.k.Errorf("%s: restart %d within %v, but %d are borne", c.Path, used, in.Within, in.Max)
		}
	}
}

// forgiven forgets what a member has spent: it is restarted by hand.
func (r *rules) forgiven(path string) { delete(r.spent, "of "+path) }

// byHand notes a restart by hand. A child on its way out after a fault has paid for it already, and now starts without
// having waited, so that no change tells of the payment.
func (r *rules) byHand(path string) {
	r.forgiven(path)
	if n := r.nodes[path]; n != nil && n.Parent == r.root && r.state[path] == core.Stopping {
		r.hidden++
	}
}

func within(all []time.Time, now time.Time, window time.Duration) (n int) {
	for _, at := range all {
		if now.Sub(at) < window {
			n++
		}
	}
	return n
}

// mayExit holds that the tree has ended because the root could bear no more.
func (r *rules) mayExit(e supervision.Exit) {
	g := r.root.Spec.Group
	now := r.k.Clock().Now()
	spent := r.spent[r.root.Path]
	if r.abandoned > g.MaxAbandoned {
		return
	}
	for _, in := range []core.Intensity{g.Intensity, g.Sustained} {
		if within(spent, now, in.Within+time.Minute)+r.hidden >= in.Max {
			return
		}
	}
	r.k.Errorf("the tree ended with %d restarts of its root's children and %d abandoned: %v", len(spent), r.abandoned, e.Fault)
}

// allRun tells whether every declared child runs.
func (r *rules) allRun() bool { return r.down == 0 }

// notRunning lists those which do not.
func (r *rules) notRunning() (list string) {
	for _, path := range slices.Sorted(maps.Keys(r.nodes)) {
		if s := r.state[path]; s != core.Running {
			list += " " + path + " is " + s.String()
		}
	}
	return list
}
