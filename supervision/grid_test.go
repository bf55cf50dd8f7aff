package supervision_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// combination is one cell of the grid: how a child of some restart type comes to its end under
// some strategy.
type combination struct {
	strategy core.Strategy
	restart  core.Restart
	// end is a fault kind, or normalEnd.
	end core.FaultKind
}

// normalEnd stands beside the kinds of fault.
const normalEnd = core.NumFaultKinds

func (c combination) String() string {
	end := "normal end"
	if c.end != normalEnd {
		end = c.end.String()
	}
	return fmt.Sprintf("%v/%v/%s", c.strategy, c.restart, end)
}

// outcome is what becomes of the child, and how often it, its elder and its younger sibling
// have started anew.
type outcome struct {
	state                core.State
	self, elder, younger int
	faults               int
	forgotten, unasked   bool
}

// declared says what the policy promises for a combination.
func declared(c combination) outcome {
	o := outcome{state: core.Running, self: 1, faults: 1}
	switch {
	case c.end == normalEnd && c.strategy == core.Pool:
		return outcome{forgotten: true}
	case c.end == normalEnd && c.restart != core.Permanent:
		return outcome{state: core.Done}
	case c.restart == core.Temporary:
		return outcome{state: core.Dead, faults: 1, unasked: true}
	}
	// A taken address is no reason to restart the others.
	if c.end != core.BindFailure {
		switch c.strategy {
		case core.OneForAll:
			o.elder, o.younger = 1, 1
		case core.RestForOne:
			o.younger = 1
		}
	}
	return o
}

// endOf makes a child come to its end.
func endOf(kind core.FaultKind) step {
	return func(ctx supervision.Context) error {
		switch kind {
		case core.Panic:
			panic("boom")
		case core.Hang:
			<-ctx.Context().Done()
			return nil
		case core.BindFailure:
			return &supervision.BindError{Addr: "somewhere", Err: errors.New("taken")}
		case normalEnd:
			return supervision.ErrDone
		}
		return errors.New("no")
	}
}

// eachCombination calls f for every cell of the grid.
func eachCombination(f func(c combination)) {
	for strategy := core.OneForOne; strategy <= core.Pool; strategy++ {
		for restart := core.Permanent; restart <= core.Temporary; restart++ {
			for end := core.Panic; end <= normalEnd; end++ {
				f(combination{strategy, restart, end})
			}
		}
	}
}

// TestGrid plays every kind of fault, and the normal end, against every strategy and restart
// type, and fails for each combination that it has not seen.
func TestGrid(t *testing.T) {
	seen := map[combination]bool{}
	eachCombination(func(c combination) {
		t.Run(c.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if got, want := playCombination(t, c, seen), declared(c); got != want {
					t.Errorf("got  %+v\nwant %+v", got, want)
				}
			})
		})
	})
	eachCombination(func(c combination) {
		if !seen[c] {
			t.Errorf("%v was never seen", c)
		}
	})
}

// playCombination ends the middle one of three children, tells what came of it, and marks the
// combination as seen by what the system itself reports of it.
func playCombination(t *testing.T, c combination, seen map[combination]bool) (o outcome) {
	s := newSystem(t)
	take := watched(s)
	names := []string{"elder", "self", "younger"}
	if c.strategy == core.Pool {
		startPool(t, s, c.restart, names)
	} else {
		startGroup(t, s, c, names)
	}
	synctest.Wait()
	take()
	s.Send(s.Ref("root/g/self"), endOf(c.end))
	pass(time.Minute)
	n := nodeAt(s, "root/g/self")
	o = outcome{state: n.State, self: n.Restarts, forgotten: n.Path == ""}
	o.elder, o.younger = nodeAt(s, "root/g/elder").Restarts, nodeAt(s, "root/g/younger").Restarts
	o.faults, o.unasked = len(s.Faults().Recent()), s.UnaskedStops() == 1
	seen[reported(take(), s)] = true
	stopped(t, s)
	return o
}

// reported rebuilds the combination from what the system itself tells of its tree, of faults
// and of changes; without a fault the child has to have left.
func reported(changes []supervision.Change, s *supervision.System) (c combination) {
	g := s.Spec().Children[0]
	child := g.Template
	if child == nil {
		child = &g.Children[1]
	}
	c = combination{strategy: g.Group.Strategy, restart: child.Restart, end: normalEnd + 1}
	for _, ch := range changes {
		if ch.Path == "root/g/self" && ch.From == core.Running && c.end > normalEnd {
			c.end = normalEnd
		}
	}
	for _, f := range s.Faults().Recent() {
		if f.Path == "root/g/self" && f.Message != "its end" {
			c.end = f.Kind
		}
	}
	return c
}

func startGroup(t *testing.T, s *supervision.System, c combination, names []string) {
	t.Helper()
	var children []supervision.Spec
	for _, name := range names {
		child := talker(&journal{}, name)
		child.Restart = c.restart
		children = append(children, child)
	}
	must(t, s.Start(sup("root", core.OneForOne, sup("g", c.strategy, children...))))
}

func startPool(t *testing.T, s *supervision.System, r core.Restart, names []string) {
	t.Helper()
	p, tmpl := sup("g", core.Pool), talker(&journal{}, "member")
	tmpl.Restart = r
	p.Template = &tmpl
	must(t, s.Start(sup("root", core.OneForOne, p)))
	for _, name := range names {
		s.Pool("root/g").Ensure(name, tmpl.Start)
	}
}

// TestGridOfReactions plays every reaction to every kind of fault, in groups and in pools.
func TestGridOfReactions(t *testing.T) {
	want := map[core.ReactionKind]core.State{core.DoRestart: core.Running, core.DoStop: core.Dead, core.DoPark: core.Parked}
	seen := map[string]bool{}
	for _, strategy := range []core.Strategy{core.OneForOne, core.Pool} {
		for do := core.DoRestart; do <= core.DoPark; do++ {
			for kind := core.Panic; kind < core.NumFaultKinds; kind++ {
				synctest.Test(t, func(t *testing.T) {
					s := newSystem(t)
					g, child := sup("g", strategy), talker(&journal{}, "self")
					child.Policy[kind] = core.Reaction{Do: do, Backoff: core.Backoff{Initial: time.Second, Factor: 1, Cap: time.Hour, Reset: time.Hour}}
					if strategy == core.Pool {
						g.Template = &child
					} else {
						g.Children = []supervision.Spec{child}
					}
					must(t, s.Start(sup("root", core.OneForOne, g)))
					if strategy == core.Pool {
						s.Pool("root/g").Ensure("self", child.Start)
					}
					s.Send(s.Ref("root/g/self"), endOf(kind))
					pass(time.Minute)
					n, above := nodeAt(s, "root/g/self"), nodeAt(s, "root/g")
					if do == core.DoEscalate {
						if above.Generation != 2 || above.LastFault == nil || above.LastFault.Kind != kind {
							t.Errorf("%v %v %v: the group is %+v", strategy, do, kind, above)
						}
					} else if n.State != want[do] || above.Generation != 1 {
						t.Errorf("%v %v %v: the child is %v, want %v", strategy, do, kind, n.State, want[do])
					}
					seen[fmt.Sprint(strategy, do, s.Faults().Recent()[0].Kind)] = true
					stopped(t, s)
				})
			}
		}
	}
	if len(seen) != 2*4*int(core.NumFaultKinds) {
		t.Errorf("only %d combinations were seen", len(seen))
	}
}
