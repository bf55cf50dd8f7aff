package operatortest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/actors/operator"
	"github.com/nodeactor/nodeactor/actors/operator/storage"
	"github.com/nodeactor/nodeactor/test/harness"
)

// Defaults of a run.
const (
	defaultNodes = 3
	defaultSeeds = 20
	// readyWithin bounds how long AllReady and Ready wait: the longest back-off, and the life of a session that nobody ends.
	readyWithin = 2 * time.Minute
	// restWithin bounds how long manifests may need to come to rest in the end, parked ones to be let go included.
	restWithin = 10 * time.Minute
	// leaveWithin bounds the graceful stop of a node.
	leaveWithin = 30 * time.Second
)

// Option changes how a test is run.
type Option func(*options)

type options struct {
	nodes   int
	seeds   int
	config  operator.OperatorConfig
	harness []harness.Option
}

// Nodes runs the operator on so many nodes, three unless it is set. They are called node-1, node-2 and so on.
func Nodes(n int) Option { return func(o *options) { o.nodes = n } }

// Seeds runs so many seeds, 20 unless it is set.
func Seeds(n int) Option { return func(o *options) { o.seeds = n } }

// Config is the operator's configuration.
func Config(c operator.OperatorConfig) Option { return func(o *options) { o.config = c } }

// Harness passes options on to package harness.
func Harness(opts ...harness.Option) Option {
	return func(o *options) { o.harness = append(o.harness, opts...) }
}

// ownPackage is the path of this package.
var ownPackage = reflect.TypeFor[Size]().PkgPath()

func chosen(opts []Option) options {
	o := options{nodes: defaultNodes, seeds: defaultSeeds, harness: []harness.Option{harness.ForKit(ownPackage)}}
	for _, f := range opts {
		f(&o)
	}
	return o
}

// Kit is one run of a test. Beside its own methods it has those of harness.Kit: Advance lets time pass, Await waits for a condition,
// Clock, Rand, Errorf, Fatalf, Go and more.
type Kit[S operator.Specification] struct {
	*harness.Kit
	options options
	make    func(*Kit[S]) operator.Operator[S]
	store   *storage.MemoryStore
	plane   *operator.ControlPlane[S]
	members []*member[S]
	boots   int
	passes  passes
	effects effects
	added   map[string]bool
}

// Sim runs a test of an operator for many seeds, each twice.
func Sim[S operator.Specification](t testing.TB, op operator.Operator[S], f func(k *Kit[S]), opts ...Option) {
	t.Helper()
	SimOf(t, Of(op), f, opts...)
}

// SimOf is Sim for operators that are made anew for each node and run.
func SimOf[S operator.Specification](t testing.TB, make func(k *Kit[S]) operator.Operator[S], f func(k *Kit[S]), opts ...Option) {
	t.Helper()
	o := chosen(opts)
	harness.Sim(t, func(h *harness.Kit) { run(h, o, make, f) }, append([]harness.Option{harness.Seeds(o.seeds)}, o.harness...)...)
}

// Bubble runs a test of an operator once, on real goroutines in virtual time.
func Bubble[S operator.Specification](t *testing.T, op operator.Operator[S], f func(k *Kit[S]), opts ...Option) {
	t.Helper()
	o := chosen(opts)
	harness.Bubble(t, func(h *harness.Kit) { run(h, o, Of(op), f) }, o.harness...)
}

// Of makes one operator that serves all nodes.
func Of[S operator.Specification](op operator.Operator[S]) func(*Kit[S]) operator.Operator[S] {
	return func(*Kit[S]) operator.Operator[S] { return op }
}

// run is one run of a test.
func run[S operator.Specification](h *harness.Kit, o options, make func(*Kit[S]) operator.Operator[S], f func(*Kit[S])) {
	k := &Kit[S]{Kit: h, options: o, make: make, added: map[string]bool{}}
	k.passes.k, k.effects.k = h, h
	h.AllowDeadLetters() // of nodes that are stopped in the middle of the run
	k.store = storage.Memory(storage.WithClock(h.Clock()))
	k.plane = k.newPlane("user", k.make(k), k.store)
	for i := range o.nodes {
		k.members = append(k.members, &member[S]{name: fmt.Sprint("node-", i+1)})
	}
	for _, m := range k.members {
		k.start(m)
	}
	f(k)
	k.finish()
}

// Add makes a manifest, or gives it another specification. The name may be namespace/name.
func (k *Kit[S]) Add(name string, spec S) {
	if err := k.plane.AddManifest(k.Context(), name, spec); err != nil {
		k.Fatalf("%v", err)
	}
	k.added[name] = true
}

// Delete asks for the deletion of a manifest.
func (k *Kit[S]) Delete(name string) {
	if err := k.plane.Delete(k.Context(), name); err != nil {
		k.Fatalf("%v", err)
	}
	k.added[name] = false
}

// Get reads a manifest; there is false when it does not exist.
func (k *Kit[S]) Get(name string) (v operator.View[S], there bool) {
	v, err := k.plane.Get(k.Context(), name)
	if err != nil && !errors.Is(err, operator.ErrNotFound) {
		k.Fatalf("%v", err)
	}
	return v, err == nil
}

// Status reads what the operator has stored as the status of a manifest.
func (k *Kit[S]) Status(name string, into any) {
	v, there := k.Get(name)
	if !there {
		k.Fatalf("there is no manifest %s", name)
	}
	if err := v.Status.Into(into); err != nil {
		k.Fatalf("%v", err)
	}
}

// Store is what the nodes share: for control planes of other kinds, which the operator reads.
func (k *Kit[S]) Store() storage.Store { return k.store }

// Passes is how many passes of a manifest have begun.
func (k *Kit[S]) Passes(name string) int { return k.passes.count(name) }

// IsReady tells whether a manifest is Ready with its present specification.
func (k *Kit[S]) IsReady(name string) bool {
	v, there := k.Get(name)
	return there && v.Status.Phase == operator.PhaseReady && v.Status.ObservedHash != "" && v.Status.ObservedGeneration == v.Generation
}

// Ready waits until these manifests are Ready with their present specifications, and fails when that takes too long.
func (k *Kit[S]) Ready(names ...string) {
	k.awaitAll(readyWithin, "is not Ready", names, k.IsReady)
}

// AllReady is Ready for all manifests that were added and not deleted.
func (k *Kit[S]) AllReady() { k.Ready(k.names()...) }

// Gone waits until a manifest that was deleted is gone.
func (k *Kit[S]) Gone(name string) {
	k.awaitAll(readyWithin, "is still there", []string{name}, func(name string) bool {
		_, there := k.Get(name)
		return !there
	})
}

// names are the manifests that were added and not deleted, in order.
func (k *Kit[S]) names() (names []string) {
	for name, there := range k.added {
		if there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// awaitAll waits until all manifests are as they should be, and names those that are not.
func (k *Kit[S]) awaitAll(max time.Duration, complaint string, names []string, good func(string) bool) {
	left := slices.Clone(names)
	sieve := func() bool {
		left = slices.DeleteFunc(left, good)
		return len(left) == 0
	}
	end := k.Clock().Now().Add(max)
	for !sieve() {
		if !k.Clock().Now().Before(end) {
			v, _ := k.Get(left[0])
			k.Fatalf("after %s %s %s: its status is %+v", max, left[0], complaint, v.Status)
		}
		k.Advance(lookEvery)
	}
}

// lookEvery is how often a condition on manifests is looked at.
const lookEvery = 100 * time.Millisecond

// finish lets everything come to rest, judges it, and stops the nodes in order.
func (k *Kit[S]) finish() {
	k.Heal()
	k.passes.release()
	if k.running() {
		k.awaitAll(restWithin, "is neither Ready nor Parked", k.names(), k.rests)
		k.judgeDeleted()
	}
	for _, name := range k.passes.missed() {
		k.Errorf("no pass of %s came that was to go wrong", name)
	}
	for _, m := range k.members {
		k.leave(m)
	}
}

// rests tells whether a manifest is as one may be in the end.
func (k *Kit[S]) rests(name string) bool {
	v, there := k.Get(name)
	return k.IsReady(name) || there && v.Status.Phase == operator.PhaseParked
}

// judgeDeleted holds that what was deleted is gone.
func (k *Kit[S]) judgeDeleted() {
	var deleted []string
	for name, there := range k.added {
		if !there {
			deleted = append(deleted, name)
		}
	}
	slices.Sort(deleted)
	for _, name := range deleted {
		k.Gone(name)
	}
}

// running tells whether a node is there to do anything.
func (k *Kit[S]) running() bool {
	return slices.ContainsFunc(k.members, func(m *member[S]) bool { return m.execution != nil })
}

// background is for what must be done though the run is over.
func background() context.Context { return context.Background() }
