package strategy

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// simulated is how many storms an ordinary test runs; the race detector, which finds nothing where there is no goroutine, runs few. STRATEGY_SEEDS sets another number, STRATEGY_SEED runs one and prints it.
const simulated = 10_000 / slowdown

// tick is one tick of a kernel of its own, which may be killed in it. It tells whether it came through.
func (s *storm) tick() (through bool) {
	clear(s.seen)
	defer func() {
		if p := recover(); p != nil {
			if _, dead := p.(killed); !dead {
				panic(p)
			}
		}
		s.identityRule()
		s.auditRule(s.since())
	}()
	kernel := New()
	kernel.Alarm = func(c Conflict) { s.assert(false, "alarm: %v", c) }
	s.latched = s.settings
	kernel.Strategies = append(kernel.Strategies, latch{s: s, settings: s.latched})
	s.note("tick at %s", s.now)
	looks := s.calls["states"]
	report, err := kernel.Tick(lookout{Observer{s, func() bool { return s.readOnly }}, s}, s.latched)
	if err == nil && len(report.Errors) == 0 {
		s.shedRule()
		s.barrierRule(s.calls["states"] - looks)
	}
	return true
}

// lookout is what the kernel sees: an observer, which notes what it refuses.
type lookout struct {
	Observer
	s *storm
}

// Apply notes and applies.
func (l lookout) Apply(b Batch) (Outcome, error) {
	if !l.s.readOnly {
		return l.Observer.Apply(b)
	}
	one := l.s.seen[b.Set]
	l.s.sequence(one, b)
	outcome, err := l.Observer.Apply(b)
	l.s.assert(outcome == Rejected && err == nil, "an observer's batch: %s, %v", outcome, err)
	one.last = Rejected
	l.s.reached["observed"]++
	return outcome, err
}

// latch checks that the settings stay what they were at the begin of the tick.
type latch struct {
	Passive
	s        *storm
	settings Settings
}

func (latch) Cause() Cause { return "latch" }

func (l latch) Update(_ State, _ Signals, settings Settings, _ Time) StateWrite {
	l.s.assert(settings == l.settings, "the settings changed within a tick")
	return StateWrite{}
}

// rest lets ticks pass in which nothing happens, time included: soon two in a row must have nothing left to do.
func (s *storm) rest() {
	calm, readOnly := s.calm, s.readOnly
	s.calm, s.readOnly = true, false
	s.note("rest")
	quiet := 0
	for ticks := 0; quiet < 2; ticks++ {
		s.assert(ticks < calmTicks, "does not come to rest")
		s.applied()
		s.assert(s.tick(), "killed in calm")
		quiet++
		if slices.ContainsFunc(s.applied(), func(d done) bool { return d.Outcome != Exhausted }) {
			quiet = 0
		}
	}
	s.stillRule()
	if s.room < 0 {
		s.exact()
	}
	s.calm, s.readOnly = calm, readOnly
}

// exact: with room enough each set has what it should have.
func (s *storm) exact() {
	for id, i := range s.items {
		one := &sighting{State: State{ID: id, Durable: i.Durable, Replicas: i.replicas}, now: s.now, refresh: i.refresh}
		left := len(i.replicas)
		for _, w := range s.wishes(one) {
			n, _ := i.count(w.shape)
			s.assert(n == w.count, "%s: %d of %s at rest, want %d", id, n, w.shape, w.count)
			left -= n
		}
		s.assert(left == 0, "%s: %d too many at rest", id, left)
	}
}

// settle ends the storm: everything is hydrated, there is room and time passes. Then nothing is under way any more.
func (s *storm) settle() {
	s.calm, s.readOnly, s.room, s.settings.BurstEnabled = true, false, -1, true
	s.rest()
	for range 3 {
		for id := range s.items {
			s.hydrate(id)
		}
		s.rest()
		s.now = s.now.After(48 * time.Hour)
	}
	s.rest()
	clear(s.probes)
	s.tick()
	for id, i := range s.items {
		_, busy := i.InFlight()
		s.assert(!busy && !i.Burst.Present(), "%s: at the end %s", id, i.View())
		r, there := i.Reconfiguration.Get()
		failed := there && (r.Status == TimedOut || r.Status == ResourceExhausted) && r.Target.Shape == i.spec.Config.Shape
		s.assert(failed || i.Config.Shape == i.spec.Config.Shape, "%s: at the end %s, declared %s", id, i.View(), i.spec.Config)
		if !i.Schedule.OnRefresh && !i.Policy.Present() {
			s.assert(s.probes[id] == 0, "%s: %d probes at the end", id, s.probes[id])
		}
	}
}

func (s *storm) run() {
	for range 4 + s.rng.IntN(rounds) {
		for range s.rng.IntN(4) {
			s.deed()
		}
		s.tick()
		if s.rng.IntN(16) == 0 {
			s.rest()
		}
	}
	s.settle()
}

// weather runs a storm and tells which rule it broke.
func weather(seed uint64, trace *strings.Builder) (broken string, reached map[string]int) {
	s := newStorm(seed, trace)
	defer func() {
		if p := recover(); p != nil {
			rule, ok := p.(violation)
			if !ok {
				rule = violation(fmt.Sprintf("panic: %v", p))
			}
			broken = string(rule)
		}
		reached = s.reached
	}()
	s.run()
	return "", nil
}

// TestStorms runs storms. Whatever happens, and whenever it does, the rules hold after each step.
func TestStorms(t *testing.T) {
	if text := os.Getenv("STRATEGY_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		showStorm(t, seed)
		return
	}
	n := uint64(simulated)
	if text := os.Getenv("STRATEGY_SEEDS"); text != "" {
		n = uint64(number(text))
	}
	var next, worst atomic.Uint64
	worst.Store(n)
	var mu sync.Mutex
	reached := map[string]int{}
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			mine := map[string]int{}
			for seed := next.Add(1) - 1; seed < worst.Load(); seed = next.Add(1) - 1 {
				broken, places := weather(seed, nil)
				for place, times := range places {
					mine[place] += times
				}
				for at := worst.Load(); broken != "" && seed < at && !worst.CompareAndSwap(at, seed); at = worst.Load() {
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for place, times := range mine {
				reached[place] += times
			}
		})
	}
	group.Wait()
	if seed := worst.Load(); seed < n {
		showStorm(t, seed)
		return
	}
	whereabouts(t, reached, n)
}

// showStorm runs a seed again and prints all that happened in it.
func showStorm(t *testing.T, seed uint64) {
	var trace strings.Builder
	broken, _ := weather(seed, &trace)
	t.Logf("seed %d:\n%s", seed, trace.String())
	if broken != "" {
		t.Errorf("%s\nagain: STRATEGY_SEED=%d go test -v -run '^TestStorms$' ./actors/strategy", broken, seed)
	}
}

// whereabouts fails when the storms did not come to all places where something can go wrong.
func whereabouts(t *testing.T, reached map[string]int, n uint64) {
	places := []string{
		"Applied", "Rejected", "ResourceExhausted", "fold Direct", "fold Started", "fold Retargeted", "fold Cancelled", "cut-over", "forced",
		"timed out", "rf 0", "reconfiguration shed", "burst", "burst shed", "burst lingered", "burst not warranted", "window", "surplus",
		"nothing to shed", "repeated", "observed", "crash in states", "crash in now", "crash in apply", "crash after apply", "crash in hydrated",
	}
	for _, place := range places {
		if n >= simulated && reached[place] < 100/slowdown {
			t.Errorf("%q was reached %d times", place, reached[place])
		}
	}
	var words []string
	for _, place := range slices.Sorted(maps.Keys(reached)) {
		words = append(words, fmt.Sprintf("%s %d", place, reached[place]))
	}
	t.Logf("%d storms: %s", n, strings.Join(words, ", "))
}

// TestTwoKernelsAtOnceComeToRest lets whole ticks of another kernel happen during ticks, as when one that was believed dead goes on. What
// they do about replicas may be too much or too little for a moment, but what is stored is right, and they come to rest.
func TestTwoKernelsAtOnceComeToRest(t *testing.T) {
	met := 0
	for seed := range uint64(simulated / 10) {
		s := newStorm(seed, nil)
		s.twins = true
		s.judge = func(b Batch, apply func()) {
			before := s.items[b.Set].Durable
			apply()
			after := s.items[b.Set].Durable
			r, busy := before.InFlight()
			target := busy && after.Config == r.Target
			none := before.Schedule.OnRefresh && after.Config.ReplicationFactor == 0 && after.Config.Shape == before.Config.Shape
			s.assert(after.Config == before.Config || target || none, "%s: realized %s became %s", b.Set, before.Config, after.Config)
		}
		func() {
			defer func() {
				if p := recover(); p != nil {
					t.Fatalf("seed %d: %v", seed, p)
				}
			}()
			s.run()
		}()
		met += s.reached["twin"]
	}
	if met < simulated/10 {
		t.Errorf("they met %d times", met)
	}
}

// TestAStormIsRepeatable runs seeds twice: nothing but the seed may decide.
func TestAStormIsRepeatable(t *testing.T) {
	for seed := range uint64(100) {
		var first, second strings.Builder
		weather(seed, &first)
		weather(seed, &second)
		if first.String() != second.String() {
			t.Fatalf("seed %d:\n%s\nand then\n%s", seed, first.String(), second.String())
		}
	}
}
