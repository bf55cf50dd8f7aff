package faultmatrix

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
	"github.com/nodeactor/nodeactor/test/faultmatrix/oracle"
	"github.com/nodeactor/nodeactor/test/standin"
)

// Paces of a trial, in virtual time.
const (
	// coarse is how often it is asked whether a trial is over.
	coarse = time.Second
	// calm is how long nothing may change before it is: pools fill again within that time.
	calm = 3 * time.Second
	// patience bounds a trial.
	patience = 15 * time.Minute
)

// trial is one fault of one child.
type trial struct {
	fault
	matrix *matrix
	// child is who has the fault; subject is the worker it is brought about in, for a
	// supervisor one of its children whose policy is to escalate.
	child, subject *standin.Node
	nodes          []*standin.Node
	world          *standin.World
	sys            *supervision.System
	clock          *jumpingClock

	pokes         int
	flooded       uint64
	condition     standin.Condition
	restartsFirst bool
	failsAgain    bool

	before, after map[string]supervision.Node
	exit          *supervision.Exit
	loop          oracle.CrashLoop
	wrong         []string

	// mu guards what is learnt of changes.
	mu      sync.Mutex
	states  map[string]core.State
	changed time.Time
	// up is when the last child came up, but for members of pools that are made anew by others.
	// repair is the time from the fault until then.
	up     time.Time
	repair time.Duration
	parked bool
}

func (c *trial) errorf(format string, args ...any) {
	c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
}

func (c *trial) must(err error) {
	if err != nil {
		c.errorf("%v", err)
	}
}

func (c *trial) send(msg any) {
	if !c.sys.Send(c.sys.Ref(c.subject.Path), msg) {
		c.errorf("nobody took %T", msg)
	}
}

func (c *trial) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// run plays the trial in a bubble.
func (c *trial) run(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		c.world = standin.NewWorld()
		c.clock = newJumpingClock()
		root := c.world.Fill(c.tree())
		c.nodes = standin.Declared(&root)
		var err error
		c.sys, err = supervision.New(supervision.Config{Clock: c.clock, Log: slog.New(slog.DiscardHandler), Rand: c.rand()})
		if err != nil {
			t.Fatal(err)
		}
		c.watch()
		if c.boot != nil {
			c.boot(c)
		}
		if err := c.sys.Start(root); err != nil && !c.declared(c).Exit {
			c.errorf("%v", err)
		}
		c.play()
		c.world.Free()
		c.sys.Stop(context.Background())
		c.judgeExit()
		synctest.Wait()
	})
}

// rand feeds the jitter: the same numbers in each run, and none in a crash loop.
func (c *trial) rand() func() float64 {
	if c.name == "poison" {
		return func() float64 { return 0 }
	}
	h := fnv.New64a()
	fmt.Fprint(h, c.child.Path, c.name)
	return rand.New(rand.NewPCG(h.Sum64(), 0)).Float64
}

// tree is the blueprint; the subject of a supervisor's fault escalates it, and so does who is between them.
func (c *trial) tree() supervision.Spec {
	tree := c.matrix.blueprint
	if c.kind == none {
		return tree
	}
	for n := c.subject; n != c.child; n = n.Parent {
		tree = changed(tree, tree.ID, n, func(s *supervision.Spec) {
			s.Policy[c.kind] = core.Reaction{Do: core.DoEscalate}
		})
	}
	return tree
}

// changed returns a copy of a tree in which one child's spec is another.
func changed(s supervision.Spec, path string, n *standin.Node, change func(*supervision.Spec)) supervision.Spec {
	if path == n.Path {
		change(&s)
		return s
	}
	if n.Member && path == n.Parent.Path {
		template := *s.Template
		change(&template)
		s.Template = &template
		return s
	}
	s.Children = append([]supervision.Spec(nil), s.Children...)
	for i, kid := range s.Children {
		s.Children[i] = changed(kid, path+"/"+kid.ID, n, change)
	}
	return s
}

func (c *trial) play() {
	c.wait(time.Second)
	if c.boot != nil {
		if c.settle() {
			c.compareBoot()
		}
		return
	}
	c.before = c.look()
	if c.bring(c); c.name != "poison" && c.settle() {
		c.compare()
	}
	if c.judge != nil {
		c.judge(c)
	}
}

// look reads the state of every child.
func (c *trial) look() map[string]supervision.Node {
	seen := map[string]supervision.Node{}
	c.sys.Inspect().Walk(func(n supervision.Node) bool { seen[n.Path] = n; return true })
	return seen
}

// watch keeps the states of all children.
func (c *trial) watch() {
	c.states = map[string]core.State{}
	members := map[string]bool{}
	for _, n := range c.nodes {
		members[n.Path] = n.Member && n.Path != c.child.Path
	}
	c.sys.Watch(func(change supervision.Change) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.states[change.Path], c.changed = change.To, time.Now()
		if change.To == core.Running && !members[change.Path] {
			c.up = c.clock.Now()
		}
		c.parked = c.parked || change.To == core.Parked && change.Path == c.subject.Path
	})
}

// settle waits until what the fault set off is over; false means that it never was.
func (c *trial) settle() bool {
	for begin := time.Now(); time.Since(begin) < patience && !c.gone(); c.wait(coarse) {
		if c.happened() && time.Since(begin) >= c.lasts && c.quiet() && c.down() == "" {
			if c.after = c.look(); c.kind != none {
				c.repair = c.up.Sub(c.lastFault().At)
			}
			return true
		}
	}
	if !c.gone() {
		c.errorf("it was not over after %v: %s", patience, c.down())
	}
	return false
}

// quiet tells whether nothing has changed for a while.
func (c *trial) quiet() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.changed) >= calm
}

func (c *trial) lastFault() *supervision.Fault {
	for _, f := range c.sys.Faults().Recent() {
		if f.Path == c.subject.Path {
			return &f
		}
	}
	return nil
}

// happened tells whether the fault that was brought about was seen.
func (c *trial) happened() bool { return c.kind == none || c.lastFault() != nil }

func (c *trial) gone() bool {
	if c.exit == nil {
		select {
		case e := <-c.sys.Done():
			c.exit = &e
		default:
		}
	}
	return c.exit != nil
}

// down names a child that should run and does not.
func (c *trial) down() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	dead := c.declared(c).Dead
	for _, n := range c.nodes[1:] {
		if c.states[n.Path] != core.Running && !dead[n.Path] {
			return fmt.Sprintf("%s is %v", n.Path, c.states[n.Path])
		}
	}
	return ""
}
