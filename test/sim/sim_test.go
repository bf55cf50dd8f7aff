package sim

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/actors/node"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
	"github.com/nodeactor/nodeactor/test/harness"
	"github.com/nodeactor/nodeactor/test/standin"
)

const (
	// repairWithin is the virtual time in which everything must run again when no cause is left:
	// the longest back-offs of a few levels after one another.
	repairWithin = time.Hour
	// earlyStopOdds is how many runs there are to one that is stopped in the middle.
	earlyStopOdds = 10
	// manySeeds are enough for everything to happen that happens sometimes.
	manySeeds = 1000
)

// TestTree is the storm over the product's tree.
func TestTree(t *testing.T) {
	storms(t, seeds, harness.Once())
}

// TestTreeTwice runs each seed twice: the two traces have to be equal.
func TestTreeTwice(t *testing.T) {
	storms(t, seeds/10)
}

// storms runs so many seeds, or those of the environment.
func storms(t *testing.T, n int, opts ...harness.Option) {
	t.Helper()
	if asked, err := strconv.Atoi(os.Getenv("HARNESS_SEEDS")); err == nil {
		n = asked
	}
	blueprint, many := theTree(t), n >= manySeeds
	harness.Sim(t, func(k *harness.Kit) { run(k, blueprint, many) }, append(opts, harness.Seeds(n))...)
}

// theTree is the product's.
func theTree(t *testing.T) supervision.Spec {
	t.Helper()
	blueprint, err := node.Blueprint(node.Config{DataDir: t.TempDir(), NodeName: "host"}.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	if rows := standin.Unknown(standin.Declared(&blueprint)); len(rows) > 0 {
		t.Fatalf("say in standin.Of how these children live: %v", rows)
	}
	return blueprint
}

// run is one seed, of many or of a few.
func run(k *harness.Kit, blueprint supervision.Spec, many bool) {
	s := newStorm(k, blueprint)
	for range 1 + k.Rand().IntN(mostDeeds) {
		s.deed()
	}
	if k.Rand().IntN(earlyStopOdds) > 0 {
		s.repair()
	}
	k.Stop()
	s.world.Free()
	k.Settle()
	if s.judge(); many {
		s.sometimes()
	}
}

// repair mends every cause and waits until everything runs, or the tree has ended by itself.
func (s *storm) repair() {
	s.mend()
	if s.k.Rand().IntN(2) == 0 {
		s.world.Free()
	}
	begin := s.k.Clock().Now()
	over := func() bool { return s.rules.allRun() || s.exited() != nil }
	late := func() bool { return s.k.Clock().Now().Sub(begin) > repairWithin }
	if s.k.Await(2*repairWithin, func() bool { return over() || late() }); !over() {
		s.k.Fatalf("not repaired within %v:%s", repairWithin, s.rules.notRunning())
	}
}

// exited is why the tree ended by itself; nil when it did not.
func (s *storm) exited() *supervision.Exit {
	if s.exit == nil {
		select {
		case e := <-s.sys.Done():
			s.exit = &e
		default:
		}
	}
	return s.exit
}

// judge looks at the end.
func (s *storm) judge() {
	if e := s.exited(); e != nil {
		s.rules.mayExit(*e)
	}
	if a := s.k.Account(); a.Waiting != 0 {
		s.k.Errorf("the books do not close: %+v", a)
	}
}

// sometimes holds that the storms get where something can go wrong.
func (s *storm) sometimes() {
	parked, escalated := s.rules.seen[core.Parked], false
	for _, f := range s.k.Faults() {
		escalated = escalated || strings.HasPrefix(f.Message, "escalation")
	}
	s.k.Sometimes("the tree ends by itself", s.exited() != nil)
	s.k.Sometimes("a generation is abandoned", s.rules.abandoned > 0)
	s.k.Sometimes("a member is parked", parked)
	s.k.Sometimes("a supervisor fails", escalated)
	s.k.Sometimes("an abandoned generation is refused its effect", s.world.Refused() > 0)
	s.k.Sometimes("messages are dead letters", s.k.Account().DeadLettered > 0)
}
