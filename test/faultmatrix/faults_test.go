package faultmatrix

import (
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
	"github.com/nodeactor/nodeactor/test/faultmatrix/oracle"
	"github.com/nodeactor/nodeactor/test/standin"
)

// fault is one column of the matrix.
type fault struct {
	name string
	// boot arranges what is to be there before the tree starts; bring brings the fault about.
	boot, bring func(c *trial)
	// declared is what the catalog says comes of it.
	declared func(c *trial) oracle.Fate
	// kind is that of the fault that has to be recorded; none stands for no fault.
	kind supervision.FaultKind
	// unstoppable: the generation would not stop and has to be abandoned.
	unstoppable bool
	// spins: it burns a core, which takes real time.
	spins bool
	// lasts is how long it has to be watched when nothing shows that it is over.
	lasts time.Duration
	// judge looks at more than the generations; it may be nil.
	judge func(c *trial)
	// applies tells to whom; nil stands for every child.
	applies func(n *standin.Node) bool
	// repairs: the time to repair is worth measuring; quick: it is bounded.
	repairs, quick bool
}

// none is the kind of what is no fault.
const none = core.NumFaultKinds

// horizon is how long a crash loop is watched.
const horizon = 10 * time.Minute

func isWorker(n *standin.Node) bool { return n.Spec.Kind == core.Worker }

func usesStore(n *standin.Node) bool {
	h := standin.Of[n.Spec.Row]
	return isWorker(n) && (h.Owns || h.Reads || h.Writes)
}

// at arms a deed at the subject's point.
func at(p standin.Point, d standin.Deed) func(c *trial) {
	return func(c *trial) { c.world.Arm(c.subject.Path, p, d, 1) }
}

// inMessage brings about a deed while an ordinary message is handled.
func inMessage(d standin.Deed) func(c *trial) {
	return func(c *trial) {
		c.world.Arm(c.subject.Path, standin.AtMessage, d, 1)
		c.send(standin.Poke{})
	}
}

func inJob(d standin.Deed) func(c *trial) {
	return func(c *trial) {
		c.world.Arm(c.subject.Path, standin.AtJob, d, 1)
		c.send(standin.Poke{Job: true})
	}
}

// whileStopping restarts the child by hand and has its stop go wrong.
func whileStopping(d standin.Deed) func(c *trial) {
	return func(c *trial) {
		c.world.Arm(c.subject.Path, standin.AtStop, d, 1)
		c.must(c.sys.Restart(c.child.Path))
	}
}

func declared(kind supervision.FaultKind) func(c *trial) oracle.Fate {
	return func(c *trial) oracle.Fate { return oracle.OfFault(c.child, kind) }
}

func declaredByHand(c *trial) oracle.Fate {
	if c.child.Parent == nil {
		return oracle.Untouched()
	}
	return oracle.ByHand(c.child)
}

func untouched(*trial) oracle.Fate { return oracle.Untouched() }

// faults are the columns, in the order of the table.
var faults = []fault{
	{name: "panic", bring: inMessage(standin.Panics), kind: core.Panic, declared: declared(core.Panic), repairs: true, quick: true},
	{name: "panic in start", boot: at(standin.AtStart, standin.Panics), kind: core.Panic, declared: declaredAtBoot(core.Panic)},
	{name: "panic in stop", bring: whileStopping(standin.Panics), kind: core.Panic, declared: declaredByHand, applies: hasParent},
	{name: "panic in job", bring: inJob(standin.Panics), kind: core.Panic, declared: declared(core.Panic), repairs: true, quick: true},
	{name: "Goexit", bring: inMessage(standin.Exits), kind: core.Panic, declared: declared(core.Panic), repairs: true, quick: true},
	{name: "error", bring: inMessage(standin.Errs), kind: core.ErrorReturn, declared: declared(core.ErrorReturn), repairs: true},
	{name: "hang, yields", bring: inMessage(standin.Blocks), kind: core.Hang, declared: declared(core.Hang), repairs: true},
	{name: "hang, blocked", bring: inMessage(standin.Wedges), kind: core.Hang, declared: declared(core.Hang), unstoppable: true, repairs: true},
	{name: "hang, spins", spins: true, kind: core.Hang, declared: declared(core.Hang), unstoppable: true, applies: isWorker, repairs: true},
	{name: "hang in job", bring: inJob(standin.Wedges), kind: core.Hang, declared: declared(core.Hang), unstoppable: true, repairs: true},
	{name: "hang in start", boot: at(standin.AtStart, standin.Blocks), kind: core.Hang, declared: declaredAtBoot(core.Hang)},
	{name: "slow", bring: slowly, kind: none, declared: untouched, judge: allHandled, applies: isWorker},
	{name: "poison", bring: poison, kind: core.Panic, declared: untouched, applies: isWorker},
	{name: "flood", bring: flood, kind: none, declared: untouched, judge: surplusIsDead},
	{name: "will not stop", bring: whileStopping(standin.Wedges), kind: none, declared: declaredByHand, unstoppable: true, applies: hasParent},
	{name: "bind", bring: bindFailure, kind: core.BindFailure, declared: declared(core.BindFailure), repairs: true, quick: true},
	{name: "store stalled", bring: storeIs(standin.Stalled), kind: none, declared: onStore, lasts: 30 * time.Second, applies: usesStore},
	{name: "store gone", bring: storeIs(standin.Gone), kind: none, declared: onStore, lasts: 10 * time.Second, applies: usesStore},
	{name: "disk full", bring: storeIs(standin.Full), kind: none, declared: onStore, lasts: 10 * time.Second, applies: usesStore},
	{name: "clock forward", bring: clockJumps(time.Hour), kind: none, declared: untouched, judge: allHandled, applies: isWorker},
	{name: "clock back", bring: clockJumps(-time.Hour), kind: none, declared: untouched, judge: allHandled, applies: isWorker},
}

func hasParent(n *standin.Node) bool { return n.Parent != nil }

// declaredAtBoot is the fate of a child that fails while the tree starts: younger siblings have
// no older generation then. Pools are filled when their elder siblings run.
func declaredAtBoot(kind supervision.FaultKind) func(c *trial) oracle.Fate {
	return func(c *trial) oracle.Fate {
		f := oracle.OfFault(c.child, kind)
		if f.Exit || c.child.Member || c.subject.Member {
			return f
		}
		only := oracle.Untouched()
		only.Moves[c.child.Path]++
		for _, kid := range c.child.Kids {
			if kid.Index <= c.subject.Index {
				only.Restarted(kid)
			}
		}
		return only
	}
}

// slowly keeps the child busy for most of its window, three times.
func slowly(c *trial) {
	c.world.Arm(c.subject.Path, standin.AtMessage, standin.Slow, 3)
	c.pokes = 3
	for range c.pokes {
		c.send(standin.Poke{})
	}
	c.lasts = 3*c.subject.Spec.HangAfter + time.Minute
}

func allHandled(c *trial) {
	if got := c.world.Handled(c.subject.Path); got != c.pokes {
		c.errorf("%d of %d messages were handled", got, c.pokes)
	}
}

// flood sends more than the mailbox takes while the child is busy.
func flood(c *trial) {
	if c.child.Spec.Kind == core.Supervisor {
		for range floodOver {
			c.sys.Send(c.sys.Ref(c.child.Path), "noise")
		}
		return
	}
	c.world.Arm(c.subject.Path, standin.AtMessage, standin.Slow, 1)
	c.send(standin.Poke{})
	c.wait(time.Millisecond)
	limit := c.subject.Spec.Mailbox.Limit
	before := c.sys.DeadLetters()
	for range limit + floodOver {
		c.sys.Send(c.sys.Ref(c.subject.Path), standin.Poke{})
	}
	c.flooded = c.sys.DeadLetters() - before
	c.pokes = limit + 1
	c.lasts = c.subject.Spec.HangAfter
}

// floodOver is how many messages a flood has above what the mailbox takes.
const floodOver = 1000

func surplusIsDead(c *trial) {
	if c.child.Spec.Kind == core.Supervisor {
		return
	}
	if allHandled(c); c.flooded != floodOver {
		c.errorf("%d messages are dead letters, not %d", c.flooded, floodOver)
	}
}

func bindFailure(c *trial) {
	if standin.Of[c.subject.Spec.Row].Listens {
		c.world.Arm(c.subject.Path, standin.AtBind, standin.CannotBind, 1)
		c.restartsFirst = true
		c.must(c.sys.Restart(c.subject.Path))
		return
	}
	inMessage(standin.CannotBind)(c)
}

// storeIs makes the store bad for this child, has it work, and heals the store.
func storeIs(condition standin.Condition) func(c *trial) {
	return func(c *trial) {
		c.condition = condition
		if standin.Of[c.subject.Spec.Row].Owns {
			if condition == standin.Gone {
				c.world.Store.Fail()
			}
			return
		}
		c.world.Store.Set(c.subject.Path, condition)
		c.send(standin.Work{})
		c.wait(25 * time.Second)
		c.world.Store.Set(c.subject.Path, standin.Fine)
	}
}

// onStore is what a child's habits make of a bad store: who keeps it fails with it, whose work
// may not fail fails too, and everybody else tries again.
func onStore(c *trial) oracle.Fate {
	h := standin.Of[c.subject.Spec.Row]
	switch {
	case h.Owns && c.condition == standin.Gone:
		return oracle.OfFault(c.child, core.ErrorReturn)
	case h.Strict:
		f := oracle.OfFault(c.child, core.ErrorReturn)
		c.failsAgain = true
		return f
	}
	return oracle.Untouched()
}

// clockJumps sets the wall clock while a message and a job are in progress.
func clockJumps(by time.Duration) func(c *trial) {
	return func(c *trial) {
		c.world.Arm(c.subject.Path, standin.AtMessage, standin.Slow, 1)
		c.world.Arm(c.subject.Path, standin.AtJob, standin.Slow, 1)
		c.pokes = 2
		c.send(standin.Poke{Job: true})
		c.send(standin.Poke{})
		c.wait(time.Second)
		c.clock.jump.Store(int64(by))
		c.lasts = c.subject.Spec.HangAfter + time.Minute
	}
}
