package harness

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

// defaultSeeds is how many seeds Sim runs unless told otherwise.
const defaultSeeds = 100

// Variables of the environment.
const (
	// seedVar names the one seed to run.
	seedVar = "HARNESS_SEED"
	// firstVar and seedsVar override which is the first seed, and how many are run.
	firstVar = "HARNESS_FIRST"
	seedsVar = "HARNESS_SEEDS"
)

// Option changes how a test is run.
type Option func(*options)

type options struct {
	first, seeds uint64
	once, only   bool
	parallel     bool
	patience     time.Duration
	lag          time.Duration
	steps        uint64
	kits         []string
}

// Seeds runs so many seeds.
func Seeds(n int) Option { return func(o *options) { o.seeds = uint64(n) } }

// First is the first of the seeds, 1 unless it is set: so several processes can share them.
func First(seed uint64) Option { return func(o *options) { o.first = seed } }

// Seed runs that seed alone.
func Seed(seed uint64) Option {
	return func(o *options) { o.first, o.seeds = seed, 1 }
}

// Patience is how much real time one step may take before the test fails because it blocks; 10 s
// unless it is set.
func Patience(d time.Duration) Option { return func(o *options) { o.patience = d } }

// Lag lets up to so much time pass while there is still something to do, as on a machine that
// is too slow: timeouts then race with what they wait for.
func Lag(d time.Duration) Option { return func(o *options) { o.lag = d } }

// Steps is how many steps a single call of Settle, Advance or the like may take before the test
// fails because it goes round in circles; two million unless it is set.
func Steps(n uint64) Option { return func(o *options) { o.steps = n } }

// Parallel leaves out the count of goroutines, which says nothing of a test that runs beside
// others.
func Parallel() Option { return func(o *options) { o.parallel = true } }

// ForKit names a package that calls the harness for the tests of others: what runs a seed again is their test, not the kit.
func ForKit(pkg string) Option { return func(o *options) { o.kits = append(o.kits, pkg) } }

// Once runs each seed once. Without it Sim runs it twice and demands equal traces.
func Once() Option { return func(o *options) { o.once = true } }

// read takes the options of a test, and those of the environment.
func read(t testing.TB, opts []Option) options {
	o := options{first: 1, seeds: defaultSeeds, patience: stuckAfter, steps: circleAfter}
	for _, f := range opts {
		f(&o)
	}
	if n, ok := variable(t, firstVar); ok {
		o.first = n
	}
	if n, ok := variable(t, seedsVar); ok {
		o.seeds = n
	}
	if n, ok := variable(t, seedVar); ok {
		o.first, o.seeds, o.only = n, 1, true
	}
	return o
}

func variable(t testing.TB, name string) (uint64, bool) {
	text := os.Getenv(name)
	if text == "" {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		t.Fatalf("cannot read %s=%q: %v", name, text, err)
	}
	return n, true
}

// command is how one seed of a test is run again.
func command(t testing.TB, pkg string, seed uint64) string {
	return fmt.Sprintf("%s=%d go test -count=1 -run '^%s$' %s", seedVar, seed, pattern(t.Name()), pkg)
}

// pattern makes the name of a test one that -run takes for that test alone.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return strings.Join(parts, "$/^")
}

// ownPackage is the path of this package.
var ownPackage = reflect.TypeFor[Kit]().PkgPath()

// caller is the package of the test that called the harness, or a kit that is built on it.
func caller(o options) string {
	pcs := make([]uintptr, 16)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		slash := strings.LastIndexByte(f.Function, '/') + 1
		name, _, _ := strings.Cut(f.Function[slash:], ".")
		pkg := f.Function[:slash] + strings.TrimSuffix(name, "_test")
		if pkg != ownPackage && !slices.Contains(o.kits, pkg) || strings.HasSuffix(f.File, "_test.go") || !more {
			return pkg
		}
	}
}

// Sim runs a test of actors under the seeded scheduler (level 1), for many seeds. Everything
// runs on one goroutine at a time, in an order that the seed decides and in virtual time. It
// returns a hash of all traces, which is the same in every process.
func Sim(t testing.TB, f func(k *Kit), opts ...Option) (hash uint64) {
	t.Helper()
	o := read(t, opts)
	pkg := caller(o)
	leaks, chances := countGoroutines(o), &chances{}
	var room [2][]event
	for seed := o.first; seed < o.first+o.seeds && !t.Failed(); seed++ {
		first := simulate(t, seed, pkg, o, chances, &room[0], f)
		hash = mix(hash, first.Hash())
		if o.once || t.Failed() {
			continue
		}
		second := simulate(t, seed, pkg, o, chances, &room[1], f)
		if first.Hash() != second.Hash() {
			t.Errorf("seed %d took two ways: something decides that is not the seed\n%s\n  %s", seed, differs(first.trace.events(), second.trace.events()), second.replay)
		}
	}
	if !o.only && !t.Failed() {
		chances.judge(t, o.seeds)
	}
	leaks.check(t)
	return hash
}

// simulate runs one seed. The room is for its trace, and lent from one seed to the next.
func simulate(t testing.TB, seed uint64, pkg string, o options, c *chances, room *[]event, f func(k *Kit)) *Kit {
	t.Helper()
	k := newKit(t, seed, o.only).seeded(o)
	k.chances = c
	k.trace.all = (*room)[:0]
	k.replay = command(t, pkg, seed)
	k.run(f)
	*room = k.trace.all
	return k
}

// run runs f and closes the kit, whatever f does.
func (k *Kit) run(f func(k *Kit)) {
	k.t.Helper()
	finished := false
	defer func() {
		k.t.Helper()
		if !finished {
			k.failed = true
		}
		k.Close()
		if !finished || k.t.Failed() {
			k.report()
		}
	}()
	f(k)
	finished = true
}

// New makes a kit for one seeded run that ends with the test.
func New(t testing.TB, opts ...Option) *Kit {
	t.Helper()
	o := read(t, opts)
	leaks := countGoroutines(o)
	k := newKit(t, o.first, o.only).seeded(o)
	k.replay = command(t, caller(o), o.first)
	t.Cleanup(func() {
		k.Close()
		leaks.check(t)
		if t.Failed() {
			k.report()
		}
	})
	return k
}

// Bubble runs a test of actors in a bubble of testing/synctest (level 2): goroutines are real
// and time is virtual, so that code which blocks can be tested too.
func Bubble(t *testing.T, f func(k *Kit), opts ...Option) {
	t.Helper()
	o := read(t, opts)
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, o.first, o.only)
		b := &bubble{concurrent{k: k, now: supervision.RealClock()}}
		k.level = b
		k.run(f)
	})
}

// Real runs a test of actors on the machine's clock (level 3).
func Real(t *testing.T, f func(k *Kit), opts ...Option) {
	t.Helper()
	o := read(t, opts)
	leaks := countGoroutines(o)
	k := newKit(t, o.first, o.only)
	k.level = &real{concurrent{k: k, now: supervision.RealClock()}}
	k.run(f)
	leaks.check(t)
}
