package faultmatrix

import (
	"fmt"
	"strings"
	"time"

	"github.com/nodeactor/nodeactor/supervision/core"
	"github.com/nodeactor/nodeactor/test/faultmatrix/oracle"
	"github.com/nodeactor/nodeactor/test/standin"
)

// compare holds the generations, the faults and who was abandoned to what is declared.
func (c *trial) compare() {
	want := c.declared(c)
	if want.Exit {
		return
	}
	times := uint64(1)
	if c.failsAgain {
		times = max(1, uint64(c.count(c.subject.Path)))
	}
	if c.restartsFirst {
		for path, by := range oracle.ByHand(c.subject).Moves {
			want.Moves[path] += by
		}
	}
	for _, n := range c.nodes {
		c.compareOne(n, want, times)
	}
	c.judgeFaults(times)
	c.judgeAbandoned()
}

func (c *trial) compareOne(n *standin.Node, want oracle.Fate, times uint64) {
	if dead := c.after[n.Path].State == core.Dead; dead != want.Dead[n.Path] {
		c.errorf("%s is dead: %v", n.Path, dead)
	}
	moved, wanted := c.moved(n), want.Moves[n.Path]*times
	least := wanted
	if n.Path != c.child.Path {
		least = want.Moves[n.Path] // it may not have come up between two faults
	}
	switch {
	case want.Anew[n.Path] && c.after[n.Path].Generation == c.before[n.Path].Generation:
		c.errorf("%s is still the same", n.Path)
	case !want.Anew[n.Path] && (moved > wanted || moved < least):
		c.errorf("%s was started anew %d times, not %d", n.Path, moved, wanted)
	}
}

// moved is how often a child was started anew. The members of a pool share their numbers, so
// theirs is told by their restarts.
func (c *trial) moved(n *standin.Node) uint64 {
	before, after := c.before[n.Path], c.after[n.Path]
	if n.Member {
		return uint64(after.Restarts - before.Restarts)
	}
	return after.Generation - before.Generation
}

// compareBoot is compare for a fault during the first start.
func (c *trial) compareBoot() {
	want := c.declared(c)
	if want.Exit {
		return
	}
	for _, n := range c.nodes {
		if anew := c.isAnew(n); anew != (want.Moves[n.Path] > 0) && !want.Anew[n.Path] {
			c.errorf("%s was started again: %v", n.Path, anew)
		}
	}
	c.judgeFaults(1)
	c.judgeAbandoned()
}

// isAnew tells whether a child is not the one that was started first. The members of a pool
// share its numbers.
func (c *trial) isAnew(n *standin.Node) bool {
	if n.Member {
		return c.after[n.Path].Restarts > 0
	}
	return c.after[n.Path].Generation > 1
}

// count is how many faults of the declared kind a path had.
func (c *trial) count(path string) (n int) {
	for _, f := range c.sys.Faults().Recent() {
		if f.Path == path {
			n++
		}
	}
	return n
}

// judgeFaults holds that the declared fault was recorded, and no other.
func (c *trial) judgeFaults(times uint64) {
	want := map[string]string{}
	switch {
	case c.failsAgain || c.kind == none && c.condition == standin.Gone && standin.Of[c.subject.Spec.Row].Owns:
		want[c.subject.Path] = strings.Repeat(core.ErrorReturn.String()+" ", int(times))
	case c.kind != none:
		want[c.subject.Path] = c.kind.String() + " "
		for n := c.subject; n != c.child && c.name != "panic in stop"; n = n.Parent {
			want[n.Parent.Path] = c.kind.String() + " "
		}
	}
	got := map[string]string{}
	for _, f := range c.sys.Faults().Recent() {
		got[f.Path] += f.Kind.String() + " "
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		c.errorf("the faults are %v, not %v", got, want)
	}
}

func (c *trial) judgeAbandoned() {
	want := int64(0)
	if c.unstoppable {
		want = 1
	}
	if got := c.sys.Abandoned(); got != want {
		c.errorf("%d generations were abandoned, not %d", got, want)
	}
	if want == 0 {
		return
	}
	c.world.Free()
	c.wait(time.Millisecond)
	if !c.world.RefusedTo(c.subject.Path, c.before[c.subject.Path].Generation) {
		c.errorf("the abandoned generation was not refused its effect")
	}
}

// judgeExit holds that the tree ended by itself only where that is declared.
func (c *trial) judgeExit() {
	want := c.loop.Exit
	if c.name != "poison" {
		want = c.declared(c).Exit
	}
	if got := c.gone(); got != want {
		c.errorf("exit is %v, not %v: %v", got, want, c.exit)
	}
}

// poison gives the child a message that it panics on, again and again, for as long as the
// horizon; then its cause is mended.
func poison(c *trial) {
	c.loop = oracle.Loop(c.subject, standin.MailAfter, horizon)
	c.world.Arm(c.subject.Path, standin.AtMessage, standin.Panics, -1)
	c.world.Mail(c.subject.Path)
	c.send(standin.Poke{})
	for begin := time.Now(); time.Since(begin) < horizon && !c.gone(); {
		c.wait(10 * coarse)
	}
	failed := map[string]bool{}
	for _, f := range c.sys.Faults().Recent() {
		failed[f.Path] = true
	}
	delete(failed, c.subject.Path)
	for path := range failed {
		if !c.loop.Failed[path] {
			c.errorf("%s has failed", path)
		}
	}
	for path := range c.loop.Failed {
		if !failed[path] && !(c.loop.Exit && path == c.nodes[0].Path) {
			c.errorf("%s has not failed", path)
		}
	}
	if c.parked != c.loop.Parked {
		c.errorf("parked is %v, not %v", c.parked, c.loop.Parked)
	}
	c.mend()
}

// mend takes the cause away: the child has to come back by itself.
func (c *trial) mend() {
	if c.gone() {
		return
	}
	c.world.Disarm(c.subject.Path, standin.AtMessage)
	for begin := time.Now(); time.Since(begin) < patience; c.wait(coarse) {
		if c.down() == "" && !c.world.HasMail(c.subject.Path) {
			return
		}
	}
	c.errorf("it did not come back: %s", c.down())
}

// word is the outcome as the table shows it.
func (c *trial) word() string {
	switch {
	case len(c.wrong) > 0:
		return "**WRONG**"
	case c.name == "poison":
		return loopWord(c.loop)
	case c.exit != nil:
		return "exit"
	}
	others, anew := 0, 0
	for _, n := range c.nodes {
		switch {
		case c.boot != nil && c.isAnew(n), c.boot == nil && c.after[n.Path].Generation != c.before[n.Path].Generation:
			if n.Path != c.child.Path {
				others++
			} else {
				anew++
			}
		}
	}
	return c.describe(anew, others)
}

func (c *trial) describe(anew, others int) string {
	word := "restart"
	switch {
	case c.after[c.child.Path].State == core.Dead:
		return "stays dead"
	case c.unstoppable:
		word = "replaced"
	case anew == 0 && c.condition != standin.Fine:
		return "tries again"
	case anew == 0:
		return "goes on"
	}
	if others > 0 {
		word += fmt.Sprintf(" +%d", others)
	}
	return word
}

func loopWord(l oracle.CrashLoop) string {
	top := ""
	for path := range l.Failed {
		if top == "" || len(path) < len(top) {
			top = path
		}
	}
	switch {
	case l.Exit:
		return "exit"
	case l.Parked:
		return "parked"
	case top != "":
		return "fails " + top
	}
	return "backs off"
}
