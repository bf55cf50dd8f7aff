package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
	"github.com/nodeactor/nodeactor/test/harness"
	"github.com/nodeactor/nodeactor/test/standin"
)

// Sizes of a storm.
const (
	// mostDeeds is how many things happen at most.
	mostDeeds = 12
	// burst is how many messages come at once, flood is that and more than a mailbox takes.
	burst, flood = 20, 4200
	// floodOdds is how many bursts there are to a flood.
	floodOdds = 100
	// frailOdds is how many runs there are to one in which groups bear next to nothing.
	frailOdds = 5
	// guests is how many members each pool may have that nobody else knows of.
	guests = 3
)

// storm is one run.
type storm struct {
	k     *harness.Kit
	world *standin.World
	sys   *supervision.System
	rules *rules
	exit  *supervision.Exit
	// workers and pools are those of the tree; places are all its children but the root.
	workers, pools, places []*standin.Node
}

func newStorm(k *harness.Kit, blueprint supervision.Spec) *storm {
	s := &storm{k: k, world: standin.NewWorld()}
	s.world.Hold = func(until func() bool) { _ = k.WaitFor(k.Context(), until) }
	root := s.world.Fill(s.configured(blueprint))
	nodes := standin.Declared(&root)
	for _, n := range nodes {
		switch {
		case n.Spec.Kind == core.Worker:
			s.workers = append(s.workers, n)
		case n.Spec.Group.Strategy == core.Pool:
			s.pools = append(s.pools, n)
		}
	}
	s.places = nodes[1:]
	s.rules = newRules(k, s.world, nodes)
	for pattern := "node"; len(pattern) < len("node/*/*/*/*/*"); pattern += "/*" {
		k.Allow(pattern)
	}
	k.AllowDeadLetters()
	k.AllowAbandoned()
	k.AllowExit()
	s.sys = k.Begin(root)
	s.rules.watch(s.sys)
	return s
}

// configured is the tree as somebody may have it: in some runs the groups below the root bear next to nothing, so that it hears of more.
func (s *storm) configured(tree supervision.Spec) supervision.Spec {
	if s.k.Rand().IntN(frailOdds) > 0 {
		return tree
	}
	tree.Children = slices.Clone(tree.Children)
	for i := range tree.Children {
		g := &tree.Children[i].Group
		g.Intensity, g.Sustained = core.Intensity{Max: 1, Within: time.Minute}, core.Intensity{Max: 2, Within: time.Hour}
	}
	return tree
}

func (s *storm) pick(of []*standin.Node) *standin.Node { return of[s.k.Rand().IntN(len(of))] }

// deed is one thing that happens.
func (s *storm) deed() {
	deeds := []func(){s.fault, s.fault, s.fault, s.fault, s.restart, s.post, s.churn, s.store, s.jump}
	deeds[s.k.Rand().IntN(len(deeds))]()
	s.pause()
}

// pause lets a moment pass, or minutes.
func (s *storm) pause() {
	switch s.k.Rand().IntN(4) {
	case 0:
	case 1:
		s.k.Advance(time.Duration(s.k.Rand().IntN(100)) * time.Millisecond)
	case 2:
		s.k.Advance(time.Duration(s.k.Rand().IntN(3000)) * time.Millisecond)
	default:
		s.k.Advance(time.Duration(s.k.Rand().IntN(60)) * time.Second)
	}
}

// fault arranges that something goes wrong, once or a few times or until it is mended, and gives
// the child a reason to come there.
func (s *storm) fault() {
	n := s.pick(s.workers)
	at := standin.Point(1 + s.k.Rand().IntN(int(standin.AtBind)))
	what := []standin.Deed{
		standin.Panics, standin.Panics, standin.Errs, standin.Errs, standin.Exits, standin.CannotBind,
		standin.Blocks, standin.Wedges, standin.Slow,
	}[s.k.Rand().IntN(9)]
	times := 1
	switch s.k.Rand().IntN(8) {
	case 0:
		times = -1
	case 1, 2:
		times = 2 + s.k.Rand().IntN(8)
	}
	s.k.Note("%s: deed %d at point %d, %d times", n.Path, what, at, times)
	s.world.Arm(n.Path, at, what, times)
	switch at {
	case standin.AtMessage:
		s.world.Mail(n.Path)
		s.k.Send(n.Path, standin.Poke{})
	case standin.AtJob:
		s.k.Send(n.Path, standin.Poke{Job: true})
	default:
		_ = s.restarted(n.Path)
	}
}

func (s *storm) restart() { _ = s.restarted(s.pick(s.places).Path) }

func (s *storm) restarted(path string) error {
	s.rules.byHand(path)
	return s.sys.Restart(path)
}

// post sends many messages, seldom more than a mailbox takes.
func (s *storm) post() {
	n := burst
	if s.k.Rand().IntN(floodOdds) == 0 {
		n = flood
	}
	path := s.pick(s.places).Path
	for range n {
		s.k.Send(path, standin.Poke{})
	}
}

// churn makes and ends members.
func (s *storm) churn() {
	pool := s.pick(s.pools)
	p := s.sys.Pool(pool.Path)
	for range burst {
		id := fmt.Sprint("guest-", s.k.Rand().IntN(guests))
		switch s.k.Rand().IntN(8) {
		case 0:
			p.Stop(id)
		case 1:
			p.Stop(standin.Members(pool.Spec.ID)[0])
		case 2:
			p.Wake(standin.Members(pool.Spec.ID)[0])
		case 3, 4:
			p.Send(id, standin.Poke{})
		default:
			p.Ensure(id, func() supervision.Handler { return s.world.Member(pool.Path, id) })
		}
	}
}

func (s *storm) store() {
	n := s.pick(s.workers)
	s.world.Store.Set(n.Path, standin.Condition(s.k.Rand().IntN(4)))
	s.k.Send(n.Path, standin.Work{})
}

func (s *storm) jump() { s.k.Jump(time.Duration(s.k.Rand().IntN(7200)-3600) * time.Second) }

// mend takes every cause away.
func (s *storm) mend() {
	for _, n := range s.workers {
		for at := standin.AtStart; at <= standin.AtBind; at++ {
			s.world.Disarm(n.Path, at)
		}
		s.world.Store.Set(n.Path, standin.Fine)
	}
}
