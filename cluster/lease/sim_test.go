package lease

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
)

// simulated is how many worlds an ordinary test plays; the race detector, which finds nothing where there is no goroutine, sees few.
// LEASE_SEEDS sets another number, LEASE_SEED plays one and prints it.
const simulated = 10_000 / slowdown

// simulate plays one seed and tells which rule was broken, "" for none.
func simulate(seed uint64, trace *strings.Builder) (w *world, broken string) {
	w = newWorld(seed, trace)
	defer func() {
		switch p := recover().(type) {
		case nil:
		case violation:
			broken = string(p)
		default:
			panic(p)
		}
	}()
	w.run()
	return w, ""
}

// TestF095_Simulation plays nodes with skewed clocks through pauses, cuts, lost and late messages, crashes, reboots, wrong verdicts and
// changes of authority, and holds every write, effect and expiry against the rules.
func TestF095_Simulation(t *testing.T) {
	if seed, err := strconv.ParseUint(os.Getenv("LEASE_SEED"), 10, 64); err == nil {
		var trace strings.Builder
		_, broken := simulate(seed, &trace)
		t.Log("\n" + trace.String())
		if broken != "" {
			t.Fatal(broken)
		}
		return
	}
	seeds := uint64(simulated)
	if n, err := strconv.ParseUint(os.Getenv("LEASE_SEEDS"), 10, 64); err == nil {
		seeds = n
	}
	reached, failed := many(seeds)
	for _, f := range failed[:min(len(failed), 5)] {
		t.Error(f)
	}
	if len(failed) > 0 {
		t.Fatalf("%d of %d seeds broke a rule; LEASE_SEED=N plays one again", len(failed), seeds)
	}
	for _, name := range slices.Sorted(maps.Keys(reached)) {
		t.Logf("%9d %s", reached[name], name)
	}
	for _, name := range situations {
		if reached[name] < int(seeds/100) {
			t.Errorf("%s came about %d times in %d seeds", name, reached[name], seeds)
		}
	}
}

// situations have to come about, or the rules about them prove nothing.
var situations = []string{
	"authority", "cancelled stopping", "cancelled taken", "cancelled unproven", "crash", "cut", "declared dead: true", "effect", "ended",
	"even", "expired", "expired alive", "fenced", "handed over", "late", "lost", "manifest live: false", "manifest live: true",
	"overlap dead", "overlap expired", "parting", "pause", "refused", "released gone", "released share", "released stopping", "slander", "stop",
	"taken dead", "taken expired", "taken free", "taken reboot", "work",
}

// many plays seeds on all processors.
func many(seeds uint64) (reached map[string]int, failed []string) {
	var next atomic.Uint64
	var mu sync.Mutex
	var all sync.WaitGroup
	reached = map[string]int{}
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for seed := next.Add(1); seed <= seeds; seed = next.Add(1) {
				w, broken := simulate(seed, nil)
				mu.Lock()
				for name, n := range w.reached {
					reached[name] += n
				}
				if broken != "" {
					failed = append(failed, fmt.Sprintf("seed %d: %s", seed, broken))
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return reached, failed
}

// TestReplay: a seed always plays the same, or a failure could not be looked at.
func TestReplay(t *testing.T) {
	var first, second strings.Builder
	simulate(42, &first)
	simulate(42, &second)
	if first.Len() < 1000 || first.String() != second.String() {
		t.Fatal("a seed has played in two ways")
	}
}
