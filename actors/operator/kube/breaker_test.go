package kube

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/cache/cachetest"
	"github.com/nodeactor/nodeactor/actors/hotloop"
	"github.com/nodeactor/nodeactor/supervision"
)

// served is an API that takes a write by calling a function.
type servedBy func(r *http.Request) int

// RoundTrip implements http.RoundTripper.
func (s servedBy) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: s(r), Request: r, Body: io.NopCloser(bytes.NewReader(nil)), Header: http.Header{}}, nil
}

// write sends a write of a pass through the breaker.
func (w *ward) write(ctx context.Context, method, path string, does func()) error {
	request, err := http.NewRequestWithContext(ctx, method, "https://in-process"+path, nil)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: w.breaker.Guard(servedBy(func(*http.Request) int { does(); return http.StatusOK }))}).Do(request)
	if err == nil {
		response.Body.Close()
	}
	return err
}

// setStatus writes the number of replicas into a Deployment's status.
func (w *ward) setStatus(ctx context.Context, name string, replicas int32) error {
	return w.write(ctx, http.MethodPut, "/apis/apps/v1/namespaces/ns/deployments/"+name+"/status", func() {
		d := w.deployment(name).DeepCopy()
		d.Status.Replicas = replicas
		cachetest.Put(w.source, d)
	})
}

// TestP58_AStatusThatWakesItselfPauses has a reconciler that writes another status in each pass.
func TestP58_AStatusThatWakesItselfPauses(t *testing.T) {
	for name, status := range map[string]func(n int32) int32{
		"Oscillation": func(n int32) int32 { return n % 2 },
		"WriteRate":   func(n int32) int32 { return n },
		"NoOpWrites":  func(int32) int32 { return 7 },
	} {
		t.Run(name, func(t *testing.T) {
			inWard(t, func(w *ward) {
				w.put("bad", 1)
				w.put("good", 1)
				writes := int32(0)
				w.do(func(ctx context.Context, key Key) error {
					if key.Name != "bad" {
						return nil
					}
					err := w.setStatus(ctx, "bad", status(writes))
					if err == nil {
						writes++
					}
					return err
				})
				w.start()
				w.passes("bad", 6*time.Second)
				w.wantEvent("Warning", eventHotLoop, name, "reconciler test of ns:bad", "deployments.apps ns/bad")
				w.wantCondition("bad", ConditionHotLoop, "True", name)
				before := writes
				if w.passes("bad", 3*time.Second); writes != before {
					t.Errorf("%d writes while it pauses", writes-before)
				}
				n := w.node("controllers/test/manifests/ns:bad")
				if len(n.JobNames) != 1 || n.JobNames[0] != pauseJob+name {
					t.Errorf("the tree shows %q of the pause", n.JobNames)
				}
				before = int32(len(w.reconciled["good"]))
				w.put("good", 2)
				if int32(len(w.reconciled["good"])) == before {
					t.Error("its sibling pauses, too")
				}
				if len(w.system.Faults().Recent()) != 0 {
					t.Errorf("faults %v", w.system.Faults().Recent())
				}
				w.do(nil)
				w.passes("bad", 12*time.Second)
				w.wantEvent("Normal", eventReleased)
				w.wantCondition("bad", ConditionHotLoop, "False", ReasonReleased)
				if w.passes("bad", 2*time.Minute) == 0 {
					t.Error("no pass after the pause")
				}
			})
		})
	}
}

// TestHotLoop_TwoWritersUndoEachOther has somebody else restore what our reconciler replaces: both are named, ours alone pauses.
func TestHotLoop_TwoWritersUndoEachOther(t *testing.T) {
	inWard(t, func(w *ward) {
		w.put("bad", 1)
		w.do(func(ctx context.Context, key Key) error {
			if w.deployment(key.Name).Status.Replicas == 1 {
				return nil
			}
			return w.setStatus(ctx, key.Name, 1)
		})
		w.start()
		theirs := 0
		for range 60 { // a stranger that puts it back four times a second, for ever
			d := w.deployment("bad").DeepCopy()
			d.Status.Replicas = 9
			cachetest.Put(w.source, d)
			theirs++
			w.breaker.Seen("alice", "other-operator", http.MethodPut, hotloop.Object{Group: "apps", Resource: "deployments", Namespace: "ns", Name: "bad"})
			time.Sleep(250 * time.Millisecond)
			synctest.Wait()
			if strings.HasPrefix(w.condition("bad", ConditionHotLoop), "True") {
				break
			}
		}
		if theirs > 6 {
			t.Errorf("it took %d rounds", theirs)
		}
		w.wantEvent("Warning", "MutualUndo", "reconciler test of ns:bad and alice with other-operator undo each other")
		w.wantCondition("bad", ConditionHotLoop, "True", "MutualUndo", "alice with other-operator")
	})
}

// TestHotLoop_AFlappingPodIsNoLoop follows a foreign change with a status each time, a hundred times.
func TestHotLoop_AFlappingPodIsNoLoop(t *testing.T) {
	inWard(t, func(w *ward) {
		w.put("a", 1)
		podKind := cache.KindOf[*corev1.Pod]()
		w.kinds = []Read{{Kind: podKind, Keys: func(*cache.Cache, cache.Change) []Key { return []Key{{Namespace: "ns", Name: "a"}} }}}
		w.do(func(ctx context.Context, key Key) error {
			pod, ok := cache.Get[*corev1.Pod](w.cache, "ns", "p")
			if !ok || w.deployment("a").Status.Replicas == int32(len(pod.Status.Phase)) {
				return nil
			}
			return w.setStatus(ctx, "a", int32(len(pod.Status.Phase)))
		})
		w.start()
		for i := range 200 {
			cachetest.Put(w.source, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p"},
				Status:     corev1.PodStatus{Phase: []corev1.PodPhase{corev1.PodRunning, corev1.PodPending, "Up"}[i%3]},
			})
			time.Sleep(time.Second / 2)
		}
		if c := w.condition("a", ConditionHotLoop); c != "" {
			t.Errorf("a healthy reconciler was paused: %s", c)
		}
	})
}

// TestP56_ARejectingNodePausesTheOwnerAlone has a node that fails every pod at once, for one owner of two.
func TestP56_ARejectingNodePausesTheOwnerAlone(t *testing.T) {
	inWard(t, func(w *ward) {
		podKind := cache.KindOf[*corev1.Pod]()
		w.kinds = []Read{Controlled(podKind, deploymentKind.GroupVersionKind())}
		made := map[string]*atomic.Int32{"bad": {}, "good": {}} // the two owners reconcile at the same time
		w.do(func(ctx context.Context, key Key) error {
			active := 0
			for _, pod := range cache.Owned[*corev1.Pod](w.cache, types.UID("uid-"+key.Name)) {
				if pod.Status.Phase != corev1.PodFailed {
					active++
				}
			}
			for ; active < int(*w.deployment(key.Name).Spec.Replicas); active++ {
				if err := w.write(ctx, http.MethodPost, "/api/v1/namespaces/ns/pods", func() {
					cachetest.Put(w.source, ownedPod(key.Name, fmt.Sprint(key.Name, "-", made[key.Name].Add(1)), ""))
				}); err != nil {
					return err
				}
			}
			return nil
		})
		w.put("bad", 3)
		w.put("good", 3)
		w.start()
		begin := time.Now()
		for !strings.HasPrefix(w.condition("bad", ConditionHotLoop), "True") {
			if time.Since(begin) > 10*time.Second {
				t.Fatal("no trip within ten seconds")
			}
			time.Sleep(30 * time.Millisecond)
			synctest.Wait()
			for _, pod := range cache.Owned[*corev1.Pod](w.cache, "uid-bad") {
				if pod.Status.Phase != corev1.PodFailed {
					cachetest.Put(w.source, ownedPod("bad", pod.Name, corev1.PodFailed))
				}
			}
		}
		synctest.Wait()
		if bad, good := made["bad"].Load(), made["good"].Load(); bad > 3+20 || good != 3 {
			t.Errorf("%d pods of the rejected, %d of the other", bad, good)
		}
		w.wantEvent("Warning", "CreateReject", "reconciler test of ns:bad", "the kubelet of n1 (OutOfcpu)")
		w.wantCondition("bad", ConditionHotLoop, "True", "CreateReject")
		if c := w.condition("good", ConditionHotLoop); c != "" {
			t.Errorf("the other owner is told %q", c)
		}
		w.put("good", 6)
		w.passes("good", time.Second)
		if good := made["good"].Load(); good != 6 {
			t.Errorf("the other owner made %d pods", good)
		}
	})
}

func ownedPod(owner, name string, phase corev1.PodPhase) *corev1.Pod {
	yes := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID(name), CreationTimestamp: metav1.Now(),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: owner, UID: types.UID("uid-" + owner), Controller: &yes}},
	}}
	if pod.Status.Phase = phase; phase != "" {
		pod.Spec.NodeName, pod.Status.Reason = "n1", "OutOfcpu"
	}
	return pod
}

func TestTargetOfARequest(t *testing.T) {
	for path, want := range map[string]hotloop.Object{
		"/api/v1/namespaces/ns/pods/a/status":                 {Resource: "pods", Namespace: "ns", Name: "a"},
		"/api/v1/namespaces/ns/pods":                          {Resource: "pods", Namespace: "ns"},
		"/api/v1/namespaces/ns":                               {Resource: "namespaces", Name: "ns"},
		"/api/v1/namespaces/ns/finalize":                      {Resource: "namespaces", Name: "ns"},
		"/api/v1/namespaces":                                  {Resource: "namespaces"},
		"/api/v1/nodes/n":                                     {Resource: "nodes", Name: "n"},
		"/apis/apps/v1/namespaces/ns/deployments/d/scale":     {Group: "apps", Resource: "deployments", Namespace: "ns", Name: "d"},
		"/apis/rbac.authorization.k8s.io/v1/clusterroles/c":   {Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Name: "c"},
		"/apis/example.com/v1/namespaces/status/widgets/name": {Group: "example.com", Resource: "widgets", Namespace: "status", Name: "name"},
	} {
		if got, ok := target(path); !ok || got != want {
			t.Errorf("%s is %+v (%v)", path, got, ok)
		}
	}
	for _, path := range []string{"/healthz", "/api", "/apis/apps/v1", ""} {
		if _, ok := target(path); ok {
			t.Errorf("%s is taken for a resource", path)
		}
	}
}

// BenchmarkSeen is the cost of a write of somebody else to an object that no reconciler writes.
func BenchmarkSeen(b *testing.B) {
	source := cachetest.NewMemory()
	breaker := NewBreaker(cache.New(source, nil), wallClock{})
	object := hotloop.Object{Resource: "pods", Namespace: "ns", Name: "a"}
	b.ReportAllocs()
	for range b.N {
		breaker.Seen("system:node:n", "kubelet", http.MethodPatch, object)
	}
}

// BenchmarkGuard is what the breaker adds to one creation by a reconciler.
func BenchmarkGuard(b *testing.B) {
	breaker := NewBreaker(cache.New(cachetest.NewMemory(), nil), wallClock{})
	answer := &http.Response{StatusCode: http.StatusCreated}
	guarded := breaker.Guard(answered{answer})
	ctx := withWriter(context.Background(), writerOf("replicaset", Key{Namespace: "ns", Name: "a"}))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://in-process/api/v1/namespaces/ns/pods", nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for range b.N {
		if _, err := guarded.RoundTrip(request); err != nil {
			b.Fatal(err)
		}
	}
}

// answered gives the same answer to everything.
type answered struct{ response *http.Response }

// RoundTrip implements http.RoundTripper.
func (a answered) RoundTrip(*http.Request) (*http.Response, error) { return a.response, nil }

// wallClock is the machine's clock.
type wallClock struct{}

// Now implements Clock.
func (wallClock) Now() time.Time { return time.Now() }

// Sleep implements Clock.
func (wallClock) Sleep(context.Context, time.Duration) error { return nil }

// TestHotLoop_APauseEndsWithItsManifest makes a manifest anew, under the name of one that pauses.
func TestHotLoop_APauseEndsWithItsManifest(t *testing.T) {
	inWard(t, func(w *ward) {
		w.put("bad", 1)
		n := int32(0)
		w.do(func(ctx context.Context, key Key) error { n++; return w.setStatus(ctx, key.Name, n%2) })
		w.start()
		w.passes("bad", 3*time.Second)
		w.wantCondition("bad", ConditionHotLoop, "True")
		w.do(nil)
		cachetest.Delete[*appsv1.Deployment](w.source, "ns", "bad")
		w.passes("bad", time.Second)
		if n := w.system.Pool("controllers/test/manifests").Len(); n != 0 {
			t.Errorf("%d actors without a manifest", n)
		}
		before := len(w.reconciled["bad"])
		w.put("bad", 1)
		w.passes("bad", time.Second)
		if len(w.reconciled["bad"]) == before {
			t.Error("the new one pauses for the old")
		}
		if n := w.reporter.complaining.Load(); n != 0 {
			t.Errorf("complaints of %d objects are left", n)
		}
	})
}

// TestA7_AControllerThatNeverRestsIsNamedOnce writes another object in each second: no loop at any of them, but no rest either.
func TestA7_AControllerThatNeverRestsIsNamedOnce(t *testing.T) {
	inWard(t, func(w *ward) {
		w.start()
		w.breaker = NewBreaker(w.cache, supervision.RealClock()) // one that no reporter asks
		ctx, said := withWriter(t.Context(), writerOf("test", Key{Namespace: "ns", Name: "busy"})), []string{}
		look := func() {
			w.breaker.turned(func(controller string, continuous bool, _ int) {
				said = append(said, fmt.Sprint(controller, " ", continuous))
			})
		}
		for i := range 80 {
			w.put(fmt.Sprint("m", i), 1)
			if err := w.setStatus(ctx, fmt.Sprint("m", i), 7); err != nil {
				t.Fatal(err)
			}
			look()
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		look()
		if len(said) != 2 || said[0] != "test true" || said[1] != "test false" {
			t.Errorf("said %q", said)
		}
	})
}
