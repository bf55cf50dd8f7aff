package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/record"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/cache/cachetest"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
	"github.com/nodeactor/nodeactor/supervision/core"
)

var deploymentKind = cache.KindOf[*appsv1.Deployment]()

// ward is a tree of a cache, a reporter and one controller of Deployments, over a store in memory whose statuses can be patched. It
// lives in a bubble of virtual time.
type ward struct {
	*testing.T
	source     *cachetest.Memory
	cache      *cache.Cache
	system     *supervision.System
	breaker    *Breaker
	reporter   *Reporter
	events     *record.FakeRecorder
	patches    int
	kinds      []Read
	reconciled map[string][]time.Time

	mu  sync.Mutex
	act func(ctx context.Context, key Key) error
}

func inWard(t *testing.T, test func(*ward)) {
	synctest.Test(t, func(t *testing.T) {
		w := &ward{T: t, source: cachetest.NewMemory(), reconciled: map[string][]time.Time{}}
		test(w)
		w.stop()
	})
}

// start brings the tree up, as a new process does.
func (w *ward) start() { w.startOver(w.source) }

// startOver is start with something between the cache and the store.
func (w *ward) startOver(source cache.Source) {
	w.Helper()
	log := slog.New(slog.DiscardHandler)
	w.cache = cache.New(source, log)
	clock := supervision.RealClock()
	w.breaker = NewBreaker(w.cache, clock)
	deps := Deps{Cache: w.cache, Clock: clock, Log: log, Breaker: w.breaker}
	deps.Reporter = NewReporter(deps, patcher{w: w}, nil)
	w.reporter = deps.Reporter
	w.events = record.NewFakeRecorder(10_000)
	deps.Reporter.events = w.events
	var err error
	if w.system, err = supervision.New(supervision.Config{Clock: clock, Log: log}); err != nil {
		w.Fatal(err)
	}
	root := catalog.Row("controllers")
	root.Children = []supervision.Spec{cache.Spec(w.cache), deps.Reporter.Spec(), Spec(Controller{
		Name: "test", Manifests: deploymentKind, Reads: append([]Read{Self(deploymentKind)}, w.kinds...),
		New: func(*cache.Cache) Reconciler { return ReconcilerFunc(w.reconcile) },
	}, deps)}
	if err := w.system.Start(root); err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
}

func (w *ward) stop() {
	if w.system != nil {
		w.system.Stop(context.Background())
		w.system = nil
	}
}

func (w *ward) reconcile(ctx context.Context, key Key) (Action, error) {
	w.mu.Lock()
	w.reconciled[key.Name] = append(w.reconciled[key.Name], time.Now())
	act := w.act
	w.mu.Unlock()
	if act == nil {
		return None(), nil
	}
	return None(), act(ctx, key)
}

// do sets what the reconciler does from now on.
func (w *ward) do(act func(ctx context.Context, key Key) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.act = act
}

// passes waits for d and counts the passes of one object meanwhile.
func (w *ward) passes(name string, d time.Duration) int {
	since := time.Now()
	time.Sleep(d)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, at := range w.reconciled[name] {
		if at.After(since) {
			n++
		}
	}
	return n
}

func (w *ward) put(name string, replicas int32) {
	cachetest.Put(w.source, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas},
		Status:     w.deployment(name).Status,
	})
	synctest.Wait()
}

func (w *ward) deployment(name string) *appsv1.Deployment {
	if w.cache != nil {
		if d, ok := cache.Get[*appsv1.Deployment](w.cache, "ns", name); ok {
			return d
		}
	}
	return &appsv1.Deployment{}
}

// condition reads a condition as STATUS REASON MESSAGE; empty when there is none.
func (w *ward) condition(name string, kind appsv1.DeploymentConditionType) string {
	for _, c := range w.deployment(name).Status.Conditions {
		if c.Type == kind {
			return fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
		}
	}
	return ""
}

func (w *ward) wantCondition(name string, kind appsv1.DeploymentConditionType, parts ...string) {
	w.Helper()
	got := w.condition(name, kind)
	for _, part := range parts {
		if !strings.Contains(got, part) {
			w.Errorf("condition %s of %s is %q, without %q", kind, name, got, part)
		}
	}
}

// wantEvent takes the Events so far and wants one with all parts.
func (w *ward) wantEvent(parts ...string) {
	w.Helper()
	var all []string
	for len(w.events.Events) > 0 {
		all = append(all, <-w.events.Events)
	}
	for _, event := range all {
		found := true
		for _, part := range parts {
			found = found && strings.Contains(event, part)
		}
		if found {
			return
		}
	}
	w.Errorf("no Event with %q among %q", parts, all)
}

func (w *ward) node(path string) supervision.Node {
	n, _ := w.system.Look(path)
	return n
}

func (w *ward) state(name string) supervision.State {
	return w.node("controllers/test/manifests/ns:" + name).State
}

// patcher applies patches of a status to the store in memory.
type patcher struct {
	metadata.Interface
	metadata.ResourceInterface
	w *ward
}

// Resource implements metadata.Interface.
func (p patcher) Resource(schema.GroupVersionResource) metadata.Getter { return p }

// Namespace implements metadata.Getter.
func (p patcher) Namespace(string) metadata.ResourceInterface { return p }

// Patch implements metadata.ResourceInterface.
func (p patcher) Patch(_ context.Context, name string, _ types.PatchType, patch []byte, _ metav1.PatchOptions, sub ...string) (*metav1.PartialObjectMetadata, error) {
	if len(sub) != 1 || sub[0] != "status" {
		return nil, errors.New("not a patch of the status")
	}
	before, err := json.Marshal(p.w.deployment(name))
	if err != nil {
		return nil, err
	}
	after, err := strategicpatch.StrategicMergePatch(before, patch, &appsv1.Deployment{})
	if err != nil {
		return nil, err
	}
	var d appsv1.Deployment
	if err := json.Unmarshal(after, &d); err != nil {
		return nil, err
	}
	p.w.patches++
	cachetest.Put(p.w.source, &d)
	return &metav1.PartialObjectMetadata{}, nil
}

func panicFor(name string) func(context.Context, Key) error {
	return func(_ context.Context, key Key) error {
		if key.Name == name {
			panic("boom: " + name)
		}
		return nil
	}
}

// TestP03_APanicIsCountedToldAndShown holds what a contained panic leaves: a count, an Event and a condition with the hash of its stack,
// and a state of the tree; and that all of it says so when it is over.
func TestP03_APanicIsCountedToldAndShown(t *testing.T) {
	inWard(t, func(w *ward) {
		w.put("bad", 1)
		w.do(panicFor("bad"))
		w.start()
		fault := w.node("controllers/test/manifests/ns:bad").LastFault
		if fault == nil || w.state("bad") != core.BackingOff {
			t.Fatalf("state %v, fault %v", w.state("bad"), fault)
		}
		if n := w.system.Faults().Counts()[supervision.FaultKey{Path: fault.Path, Kind: supervision.Panic}]; n != 1 {
			t.Errorf("%d panics counted", n)
		}
		w.wantEvent("Warning", eventBackOff, "Panic", "stack "+fault.StackHash(), "boom: bad")
		w.wantCondition("bad", ConditionHealthy, "False", ReasonRestarting, "test: Panic in job pass", "stack "+fault.StackHash(), "failed once, next try ")
		w.do(nil)
		w.passes("bad", 5*time.Second)
		if w.state("bad") != core.Running {
			t.Errorf("state %v", w.state("bad"))
		}
		w.wantEvent("Normal", eventRecovered)
		w.wantCondition("bad", ConditionHealthy, "True", ReasonRecovered)
		patches := w.patches
		if w.passes("bad", 10*time.Minute); w.patches != patches {
			t.Errorf("%d writes at rest", w.patches-patches)
		}
	})
}

// TestP03_APoisonObjectParksAloneAndIsTriedAtOnceWhenMended holds that nothing but the poison object waits, that it costs little while it
// does, that writing its condition does not wake it, and that mending it does.
func TestP03_APoisonObjectParksAloneAndIsTriedAtOnceWhenMended(t *testing.T) {
	inWard(t, func(w *ward) {
		w.put("bad", 1)
		w.put("good", 1)
		w.do(panicFor("bad"))
		w.start()
		if n := w.passes("bad", time.Minute); n > 10 || w.state("bad") != core.Parked {
			t.Errorf("%d passes in the first minute, then %v", n, w.state("bad"))
		}
		w.wantEvent("Warning", eventCrashLoop, "boom: bad")
		w.wantCondition("bad", ConditionHealthy, "False", ReasonCrashLoop, "Panic")
		if n := w.passes("bad", time.Hour); n > 65 || n < 30 {
			t.Errorf("%d passes in an hour of crash loop", n)
		}
		before := len(w.reconciled["good"])
		w.put("good", 2)
		if n := len(w.reconciled["good"]) - before; n != 1 {
			t.Errorf("%d passes of its sibling", n)
		}
		for i := range 20 { // the status is none of the mender's business
			d := w.deployment("bad").DeepCopy()
			d.Status.Replicas = int32(i)
			cachetest.Put(w.source, d)
		}
		if n := w.passes("bad", 10*time.Second); n > 1 {
			t.Errorf("%d passes for changes of its status", n)
		}
		w.put("bad", 2) // a mending that fails, so as to begin right behind a try
		w.passes("bad", 2*time.Second)
		w.do(nil)
		w.put("bad", 3)
		if w.state("bad") != core.Running {
			t.Errorf("it is %v after it was mended", w.state("bad"))
		}
		w.passes("bad", 100*time.Millisecond)
		w.wantCondition("bad", ConditionHealthy, "True", ReasonRecovered)
	})
}

// TestP03_ManyChangesOfAPoisonObjectDoNotMakeALoop changes it a hundred times a second.
func TestP03_ManyChangesOfAPoisonObjectDoNotMakeALoop(t *testing.T) {
	inWard(t, func(w *ward) {
		w.put("bad", 1)
		w.do(panicFor("bad"))
		w.start()
		w.passes("bad", 2*time.Minute)
		begin := len(w.reconciled["bad"])
		for i := range int32(1000) {
			w.put("bad", i+2)
			time.Sleep(10 * time.Millisecond)
		}
		if n := len(w.reconciled["bad"]) - begin; n > 13 {
			t.Errorf("%d passes in ten seconds", n)
		}
	})
}

// TestP03_ARestartDoesNotLoopAndClearsWhatIsOver restarts the process with a poison object, then with one that was mended meanwhile.
func TestP03_ARestartDoesNotLoopAndClearsWhatIsOver(t *testing.T) {
	inWard(t, func(w *ward) {
		w.put("bad", 1)
		w.put("good", 1)
		w.do(panicFor("bad"))
		w.start()
		w.passes("bad", 5*time.Minute)
		w.wantCondition("bad", ConditionHealthy, "False", ReasonCrashLoop)
		for range 3 {
			w.stop()
			w.start()
			if n := w.passes("bad", 2*time.Minute); n > 8 || w.state("bad") != core.Parked {
				t.Errorf("%d passes after a restart, then %v", n, w.state("bad"))
			}
			w.wantCondition("bad", ConditionHealthy, "False", ReasonCrashLoop)
		}
		w.stop()
		w.do(nil)
		w.start()
		w.passes("bad", 5*time.Second)
		w.wantCondition("bad", ConditionHealthy, "True", ReasonRecovered)
		if c := w.condition("good", ConditionHealthy); c != "" {
			t.Errorf("its sibling was told %q", c)
		}
	})
}

func TestP03_AnObjectThatHangsIsToldAndParked(t *testing.T) {
	inWard(t, func(w *ward) {
		w.put("bad", 1)
		release := make(chan struct{})
		w.do(func(context.Context, Key) error { <-release; return nil })
		w.start()
		w.passes("bad", 2*time.Minute)
		w.wantEvent("Warning", "Hang")
		w.wantCondition("bad", ConditionHealthy, "False", "test: Hang in job pass")
		before := len(w.reconciled["bad"])
		if n := w.passes("bad", 24*time.Hour); n > 3 || before > 3 || w.node("controllers/test/manifests").Restarts != 0 {
			t.Errorf("%d and %d passes hang, the pool was restarted %d times", before, n, w.node("controllers/test/manifests").Restarts)
		}
		w.do(nil)
		close(release)
		w.passes("bad", 2*time.Minute)
		w.wantCondition("bad", ConditionHealthy, "True", ReasonRecovered)
	})
}

func TestP03_APassThatAlwaysFailsIsToldButNotItsOutage(t *testing.T) {
	inWard(t, func(w *ward) {
		w.put("bad", 1)
		w.put("cut", 1)
		w.do(func(_ context.Context, key Key) error {
			if key.Name == "bad" {
				return errors.New("the image has no name")
			}
			return fmt.Errorf("cannot ask: %w", cache.ErrSourceDown)
		})
		w.start()
		w.passes("bad", 3*time.Minute)
		w.wantEvent("Warning", eventFailing, "the image has no name")
		w.wantCondition("bad", ConditionHealthy, "False", ReasonFailing, "the image has no name")
		if c := w.condition("cut", ConditionHealthy); c != "" {
			t.Errorf("an outage is told as %q", c)
		}
		w.do(nil)
		w.put("bad", 2)
		w.passes("bad", time.Minute)
		w.wantCondition("bad", ConditionHealthy, "True", ReasonRecovered)
	})
}

// TestP04_AControllerThatAlwaysPanicsIsParkedAndSaysSo gives every manifest a panic, as bad configuration does.
func TestP04_AControllerThatAlwaysPanicsIsParkedAndSaysSo(t *testing.T) {
	inWard(t, func(w *ward) {
		for i := range 50 {
			w.put(fmt.Sprint("m", i), 1)
		}
		w.do(func(context.Context, Key) error { panic("bad configuration") })
		w.start()
		w.passes("", time.Hour)
		for i := range 50 {
			name := fmt.Sprint("m", i)
			if state := w.state(name); state != core.Parked {
				t.Errorf("%s is %v", name, state)
			}
			w.wantCondition(name, ConditionHealthy, "False", ReasonCrashLoop, "bad configuration")
			if n := len(w.reconciled[name]); n > 70 {
				t.Errorf("%s was tried %d times in an hour", name, n)
			}
		}
		select {
		case exit := <-w.system.Done():
			t.Errorf("the tree gave up: %v", exit)
		default:
		}
	})
}

// TestP04_ADispatcherThatAlwaysPanicsIsNoSilentLoop holds that the part of a controller that cannot be parked is tried on its back-off,
// and that every try is counted and shown.
func TestP04_ADispatcherThatAlwaysPanicsIsNoSilentLoop(t *testing.T) {
	inWard(t, func(w *ward) {
		w.kinds = []Read{{Kind: cache.KindOf[*corev1.Secret](), Keys: func(*cache.Cache, cache.Change) []Key { panic("bad mapping") }}}
		w.start()
		for range 3600 {
			cachetest.Put(w.source, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", UID: "s"}})
			time.Sleep(time.Second)
		}
		const path = "controllers/test/dispatcher"
		n := w.node(path)
		if n.LastFault == nil || !strings.Contains(n.LastFault.Error(), "bad mapping") {
			t.Errorf("the tree shows %v of it", n.LastFault)
		}
		counted := w.system.Faults().Counts()[supervision.FaultKey{Path: path, Kind: supervision.Panic}]
		if counted > 500 || counted < 100 {
			t.Errorf("%d panics in an hour", counted)
		}
	})
}
