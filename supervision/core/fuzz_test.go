package core

import (
	"math/rand/v2"
	"testing"
	"time"
)

// world plays the supervisor that carries out the actions of a group, and checks each action
// against what it knows is running.
type world struct {
	t     *testing.T
	group *Group
	spec  GroupSpec
	now   time.Time
	rng   *rand.Rand
	// live is the running generation of each child, 0 for none; asked that it was told to stop.
	live    []uint64
	states  []State
	asked   []bool
	last    []uint64
	waits   []Action
	ready   bool
	stopped bool
	ending  bool
}

func newWorld(t *testing.T, strategy Strategy, seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 1))
	spec := GroupSpec{Strategy: strategy, Intensity: Intensity{Max: 1 + rng.IntN(5), Within: 10 * time.Second}, MaxAbandoned: 1 + rng.IntN(3)}
	spec.Sustained = Intensity{Max: spec.Intensity.Max + rng.IntN(10), Within: time.Minute}
	var children []ChildSpec
	for i := range 1 + rng.IntN(5) {
		c := testChild(string(rune('a' + i)))
		c.Restart = Permanent + Restart(rng.IntN(3))
		c.Significant = rng.IntN(8) == 0
		for k := range c.Policy {
			if rng.IntN(4) == 0 {
				c.Policy[k].Do = DoRestart + ReactionKind(rng.IntN(4))
			}
		}
		children = append(children, c)
	}
	n := len(children)
	return &world{
		t: t, spec: spec, rng: rng, group: NewGroup(spec, children, rng.Float64), now: time.Unix(1e9, 0),
		live: make([]uint64, n), states: make([]State, n), asked: make([]bool, n), last: make([]uint64, n),
	}
}

func (w *world) step(e Event) {
	w.t.Helper()
	actions := w.group.Step(w.now, e)
	w.follow()
	if w.stopped && len(actions) > 0 {
		w.t.Fatalf("actions %v after the end", actions)
	}
	for _, a := range actions {
		w.check(a)
	}
}

// follow holds that the moves of a step lead from the states before to those after it, and that
// whoever waits has a next try.
func (w *world) follow() {
	w.t.Helper()
	for _, m := range w.group.Moves() {
		if m.From != w.states[m.Child] || m.From == m.To || m.Repair < 0 || m.Repair > 0 && m.To != Running {
			w.t.Fatalf("the move %+v of a child that is %v", m, w.states[m.Child])
		}
		w.states[m.Child] = m.To
	}
	for i, c := range w.group.Children() {
		waits := c.State == BackingOff || c.State == Parked
		if c.State != w.states[i] || waits == c.NextTry.IsZero() {
			w.t.Fatalf("child %d is %v until %v, its moves led to %v", i, c.State, c.NextTry, w.states[i])
		}
	}
}

func (w *world) check(a Action) {
	w.t.Helper()
	switch a.Kind {
	case StartChild:
		w.checkStart(a)
	case StopChild:
		w.checkStop(a)
	case AbandonChild:
		if w.live[a.Child] != a.Gen || !w.asked[a.Child] {
			w.t.Fatalf("abandons %d#%d, which was not asked to stop", a.Child, a.Gen)
		}
		w.live[a.Child] = 0
	case Wait:
		if a.Delay <= 0 {
			w.t.Fatalf("waits %v", a.Delay)
		}
		w.waits = append(w.waits, a)
	case GroupReady:
		if w.ready {
			w.t.Fatal("ready twice")
		}
		w.ready = true
	case GroupStopped:
		w.stopped = true
		for i, gen := range w.live {
			if gen != 0 {
				w.t.Fatalf("ended while %d#%d runs", i, gen)
			}
		}
	}
}

func (w *world) checkStart(a Action) {
	w.t.Helper()
	if w.live[a.Child] != 0 || w.ending {
		w.t.Fatalf("starts %d#%d beside %d (ending %v)", a.Child, a.Gen, w.live[a.Child], w.ending)
	}
	if a.Gen <= w.last[a.Child] {
		w.t.Fatalf("generation %d after %d", a.Gen, w.last[a.Child])
	}
	w.live[a.Child], w.last[a.Child], w.asked[a.Child] = a.Gen, a.Gen, false
	if w.spec.Strategy == OneForOne {
		return
	}
	for j := range w.live {
		if w.asked[j] && w.live[j] != 0 {
			w.t.Fatalf("starts %d while %d is stopping", a.Child, j)
		}
		if s := w.group.Children()[j].State; j < a.Child && s == Starting {
			w.t.Fatalf("starts %d before %d has acknowledged", a.Child, j)
		}
	}
}

func (w *world) checkStop(a Action) {
	w.t.Helper()
	if w.live[a.Child] != a.Gen || w.asked[a.Child] {
		w.t.Fatalf("stops %d#%d, running is %d", a.Child, a.Gen, w.live[a.Child])
	}
	serial := w.spec.Strategy != OneForOne || w.group.ending
	for j := range w.live {
		if serial && w.asked[j] && w.live[j] != 0 {
			w.t.Fatalf("stops %d while %d is stopping", a.Child, j)
		}
		if w.group.ending && j > a.Child && w.live[j] != 0 {
			w.t.Fatalf("stops %d before the newer %d", a.Child, j)
		}
	}
	w.asked[a.Child] = true
}

// random does one thing that could happen now.
func (w *world) random(op, arg byte) {
	w.now = w.now.Add(time.Duration(op>>4) * 300 * time.Millisecond)
	i := int(arg>>3) % len(w.live)
	e := Event{Child: i, Gen: w.live[i], Fault: FaultKind(arg & 3)}
	switch op % 10 {
	case 0, 1, 2:
		e.Kind = ChildReady
	case 3, 4:
		e.Kind = ChildFault
	case 5:
		w.exit(i, false)
		return
	case 6:
		w.exit(i, true)
		return
	case 7:
		e.Kind = StopElapsed
	case 8:
		w.elapse()
		return
	case 9:
		if arg%4 != 0 {
			return
		}
		e.Kind = ChildRestart
	}
	if e.Kind != ChildRestart && w.live[i] == 0 {
		e.Gen = uint64(arg) // something stale
	}
	if e.Kind == StopElapsed && !w.asked[i] {
		return
	}
	w.step(e)
}

// exit ends a child: as asked, or by itself.
func (w *world) exit(i int, normal bool) {
	gen := w.live[i]
	if gen == 0 || !w.asked[i] && !normal {
		return
	}
	w.live[i] = 0
	w.step(Event{Kind: ChildExited, Child: i, Gen: gen, Normal: normal && !w.asked[i]})
}

func (w *world) elapse() {
	if len(w.waits) == 0 {
		return
	}
	a := w.waits[0]
	w.waits = w.waits[1:]
	w.step(Event{Kind: BackoffElapsed, Child: a.Child, Gen: a.Gen})
}

// finish stops the group and lets everything that was asked to stop do so.
func (w *world) finish() {
	w.step(Event{Kind: GroupStop})
	w.ending = true
	for round := 0; !w.stopped; round++ {
		if round > 10*len(w.live) {
			w.t.Fatalf("the group does not end: live %v, asked %v", w.live, w.asked)
		}
		for i := range w.live {
			w.exit(i, false)
		}
	}
}

// FuzzGroup holds every strategy to its order, whatever happens and in whatever order.
func FuzzGroup(f *testing.F) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 2))
		moves := make([]byte, 200)
		for i := range moves {
			moves[i] = byte(rng.Uint32())
		}
		f.Add(seed, moves)
	}
	f.Fuzz(func(t *testing.T, seed uint64, moves []byte) {
		w := newWorld(t, OneForOne+Strategy(seed%3), seed)
		w.step(Event{Kind: GroupStart})
		for i := 0; i+1 < len(moves) && i < 2000; i += 2 {
			w.random(moves[i], moves[i+1])
		}
		w.finish()
	})
}

// TestManySeeds plays long random lives of every strategy.
func TestManySeeds(t *testing.T) {
	ends, starts := 0, 0
	for seed := range uint64(3000) {
		w := newWorld(t, OneForOne+Strategy(seed%3), seed)
		w.step(Event{Kind: GroupStart})
		for range 100 {
			w.random(byte(w.rng.Uint32()), byte(w.rng.Uint32()))
		}
		if w.stopped {
			ends++
		}
		for _, gen := range w.last {
			starts += int(gen)
		}
		w.finish()
	}
	if ends < 100 || starts < 10_000 {
		t.Errorf("%d groups ended by themselves in %d starts: the play is too tame", ends, starts)
	}
}

// FuzzBudgets compares the rings with the obvious list of all accepted restarts.
func FuzzBudgets(f *testing.F) {
	f.Add(uint8(3), uint8(5), []byte{1, 1, 1, 1, 30, 1})
	f.Add(uint8(3), uint8(1), []byte{1, 50, 1, 50, 50, 60, 60, 60, 60, 60})
	f.Fuzz(func(t *testing.T, limit, slow uint8, gaps []byte) {
		g := GroupSpec{
			Intensity: Intensity{Max: 1 + int(limit)%20, Within: 50 * time.Second},
			Sustained: Intensity{Max: 1 + int(slow)%40, Within: 500 * time.Second},
		}
		b := newBudgets(g)
		var accepted []time.Time
		now := time.Unix(1e9, 0)
		for _, gap := range gaps {
			now = now.Add(time.Duration(gap) * time.Second)
			want := recent(accepted, now, g.Intensity) && recent(accepted, now, g.Sustained)
			if got := b.spend(now); got != want {
				t.Fatalf("spend = %v after %v of %+v", got, accepted, g)
			}
			if want {
				accepted = append(accepted, now)
			}
			if len(b.burst.ring) > g.Intensity.Max || len(b.sustained.ring) > g.Sustained.Max {
				t.Fatalf("the rings have %d and %d places", len(b.burst.ring), len(b.sustained.ring))
			}
		}
	})
}

// recent tells whether fewer restarts than allowed lie in the window before now.
func recent(accepted []time.Time, now time.Time, in Intensity) bool {
	n := 0
	for _, at := range accepted {
		if now.Sub(at) < in.Within {
			n++
		}
	}
	return n < in.Max
}
