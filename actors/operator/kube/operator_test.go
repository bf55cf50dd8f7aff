package kube_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/cache/cachetest"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

var (
	mapKind     = cache.KindOf[*corev1.ConfigMap]()
	secretKind  = cache.KindOf[*corev1.Secret]()
	accountKind = cache.KindOf[*corev1.ServiceAccount]()
)

// kit is a tree of a cache and one controller over a store in memory.
type kit struct {
	t      *testing.T
	source *cachetest.Memory
	cache  *cache.Cache
	system *supervision.System

	mu     sync.Mutex
	passes []pass
	// act is what a pass does; nil for nothing.
	act func(ctx context.Context, key kube.Key) (kube.Action, error)
}

type pass struct {
	key kube.Key
	at  time.Time
}

// run builds the tree, in a bubble of virtual time, lets it come to rest, and runs the test in it.
func run(t *testing.T, prepare func(*kit), test func(*kit)) {
	synctest.Test(t, func(t *testing.T) {
		k := &kit{t: t, source: cachetest.NewMemory()}
		k.cache = cache.New(k.source, slog.New(slog.DiscardHandler))
		prepare(k)
		clock := supervision.RealClock()
		system, err := supervision.New(supervision.Config{Clock: clock, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		k.system = system
		deps := kube.Deps{Cache: k.cache, Clock: clock, Log: slog.New(slog.DiscardHandler)}
		root := catalog.Row("controllers")
		root.Children = []supervision.Spec{cache.Spec(k.cache), kube.Spec(k.controller(), deps)}
		if err := system.Start(root); err != nil {
			t.Fatal(err)
		}
		defer system.Stop(context.Background())
		synctest.Wait()
		test(k)
	})
}

// controller reconciles ConfigMaps, is woken by Secrets of the same name, and reads ServiceAccounts silently.
func (k *kit) controller() kube.Controller {
	return kube.Controller{
		Name: "test", Manifests: mapKind,
		Reads: []kube.Read{kube.Self(mapKind), kube.Self(secretKind), kube.Silent(accountKind)},
		New:   func(*cache.Cache) kube.Reconciler { return kube.ReconcilerFunc(k.pass) },
	}
}

func (k *kit) pass(ctx context.Context, key kube.Key) (kube.Action, error) {
	k.mu.Lock()
	k.passes = append(k.passes, pass{key, time.Now()})
	act := k.act
	k.mu.Unlock()
	if act == nil {
		return kube.None(), nil
	}
	return act(ctx, key)
}

func (k *kit) do(act func(ctx context.Context, key kube.Key) (kube.Action, error)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.act = act
}

// take waits for d and gives the passes since the last take.
func (k *kit) take(d time.Duration) []pass {
	time.Sleep(d)
	synctest.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	passes := k.passes
	k.passes = nil
	return passes
}

func (k *kit) actors() int { return k.system.Pool("controllers/test/manifests").Len() }

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}
}

func (k *kit) put(name string) {
	cachetest.Put(k.source, &corev1.ConfigMap{ObjectMeta: meta(name)})
}

func oneMap(k *kit) { k.put("a") }

func TestWhatExistsIsReconciledAtTheStart(t *testing.T) {
	run(t, func(k *kit) { k.put("a"); k.put("b") }, func(k *kit) {
		if passes := k.take(0); len(passes) != 2 || k.actors() != 2 {
			t.Errorf("%d passes, %d actors", len(passes), k.actors())
		}
	})
}

func TestF049_BurstIsALeadingAndATrailingPass(t *testing.T) {
	run(t, oneMap, func(k *kit) {
		k.take(time.Second)
		begin := time.Now()
		for range 100 {
			k.put("a")
			time.Sleep(300 * time.Microsecond)
		}
		passes := k.take(time.Second)
		if len(passes) != 2 || passes[0].at.Sub(begin) != 0 || passes[1].at.Sub(begin) != 50*time.Millisecond {
			t.Errorf("passes after the burst at %v: %v", begin, passes)
		}
	})
}

func TestF048_OnlyDeclaredReadsWake(t *testing.T) {
	run(t, oneMap, func(k *kit) {
		k.take(time.Second)
		cachetest.Put(k.source, &corev1.ServiceAccount{ObjectMeta: meta("a")})
		cachetest.Put(k.source, &corev1.Pod{ObjectMeta: meta("a")})
		if passes := k.take(time.Second); len(passes) != 0 {
			t.Errorf("woken by what is not declared: %v", passes)
		}
		cachetest.Put(k.source, &corev1.Secret{ObjectMeta: meta("a")})
		if passes := k.take(0); len(passes) != 1 {
			t.Errorf("%d passes for a declared read", len(passes))
		}
		cachetest.Put(k.source, &corev1.Secret{ObjectMeta: meta("no such manifest")})
		if passes := k.take(time.Second); len(passes) != 0 || k.actors() != 1 {
			t.Errorf("passes %v, %d actors", passes, k.actors())
		}
	})
}

func TestF049_FallbackRunsWithoutAnyChange(t *testing.T) {
	run(t, oneMap, func(k *kit) {
		k.take(0)
		passes := k.take(120 * time.Second)
		if len(passes) < 3 || len(passes) > 5 {
			t.Errorf("%d passes in two minutes of rest", len(passes))
		}
	})
}

func TestAPassSeesItsOwnLastWrite(t *testing.T) {
	run(t, oneMap, func(k *kit) {
		written := 0
		k.do(func(_ context.Context, key kube.Key) (kube.Action, error) {
			if n := len(cache.Owned[*corev1.Pod](k.cache, "uid-a")); n != written {
				t.Errorf("wrote %d, sees %d", written, n)
			}
			if written < 20 {
				pod := &corev1.Pod{ObjectMeta: meta(fmt.Sprint("p", written))}
				pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "uid-a"}}
				cachetest.Put(k.source, pod)
				written++
			}
			return kube.Requeue(time.Millisecond), nil
		})
		k.put("a")
		k.take(time.Second)
		if written != 20 {
			t.Errorf("wrote %d", written)
		}
	})
}

func TestFailuresBackOffAndHeal(t *testing.T) {
	run(t, oneMap, func(k *kit) {
		k.take(time.Second)
		k.do(func(context.Context, kube.Key) (kube.Action, error) {
			return kube.None(), errors.New("refused")
		})
		k.put("a")
		passes := k.take(20 * time.Second)
		if len(passes) < 5 || len(passes) > 6 {
			t.Errorf("%d passes in 20 s of failures", len(passes))
		}
		k.do(nil)
		k.put("a")
		if passes := k.take(2 * time.Second); len(passes) != 1 {
			t.Errorf("%d passes after the cause was removed", len(passes))
		}
	})
}

func TestAPanicIsOfOneManifest(t *testing.T) {
	run(t, func(k *kit) { k.put("a"); k.put("b") }, func(k *kit) {
		k.take(time.Second)
		first := true
		k.do(func(_ context.Context, key kube.Key) (kube.Action, error) {
			if key.Name == "a" && first {
				first = false
				panic("for the test")
			}
			return kube.None(), nil
		})
		k.put("a")
		k.put("b")
		passes := k.take(5 * time.Second)
		count := map[string]int{}
		for _, p := range passes {
			count[p.key.Name]++
		}
		if count["a"] < 2 || count["b"] != 1 {
			t.Errorf("passes %v", count)
		}
		if faults := k.system.Faults().Recent(); len(faults) != 1 || faults[0].Kind != supervision.Panic {
			t.Errorf("faults %v", faults)
		}
	})
}

func TestAHangingPassIsReplaced(t *testing.T) {
	run(t, oneMap, func(k *kit) {
		k.take(time.Second)
		stuck := make(chan struct{})
		k.do(func(context.Context, kube.Key) (kube.Action, error) { <-stuck; return kube.None(), nil })
		k.put("a")
		k.take(time.Second)
		k.do(nil)
		if passes := k.take(3 * time.Minute); len(passes) == 0 {
			t.Error("no pass beside the hanging one")
		}
		close(stuck)
		synctest.Wait()
	})
}

func TestAGoneManifestLosesItsActorAndANewOneGetsIts(t *testing.T) {
	run(t, oneMap, func(k *kit) {
		k.take(time.Second)
		for round := range 50 {
			cachetest.Delete[*corev1.ConfigMap](k.source, "ns", "a")
			time.Sleep(time.Duration(round) * 7 * time.Microsecond)
			if round%2 == 0 {
				synctest.Wait()
			}
			k.put("a")
			if passes := k.take(time.Second); len(passes) == 0 || k.actors() != 1 {
				t.Fatalf("round %d: passes %v, %d actors", round, passes, k.actors())
			}
		}
		cachetest.Delete[*corev1.ConfigMap](k.source, "ns", "a")
		if k.take(time.Second); k.actors() != 0 {
			t.Errorf("%d actors without a manifest", k.actors())
		}
	})
}

func TestNothingIsLostOverRestarts(t *testing.T) {
	run(t, oneMap, func(k *kit) {
		k.take(time.Second)
		for i, path := range []string{"controllers/test/dispatcher", "controllers/cache", "controllers/test/manifests", "controllers/test"} {
			if err := k.system.Restart(path); err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprint("during-", i)
			k.put(name)
			k.put("a")
			passes := k.take(7 * time.Second)
			seen := map[string]bool{}
			for _, p := range passes {
				seen[p.key.Name] = true
			}
			if !seen[name] || !seen["a"] || k.actors() != i+2 {
				t.Errorf("restart of %s: passes %v, %d actors", path, passes, k.actors())
			}
		}
		k.source.Break()
		k.put("broken")
		if passes := k.take(5 * time.Second); len(passes) == 0 {
			t.Error("a change was lost over a broken stream")
		}
	})
}

func TestParallelIsBoundedAndContained(t *testing.T) {
	var mu sync.Mutex
	running, most := 0, 0
	err := kube.Parallel(t.Context(), 4, 40, func(context.Context, int) error {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		time.Sleep(time.Millisecond)
		mu.Lock()
		running--
		mu.Unlock()
		return nil
	})
	if err != nil || most != 4 {
		t.Errorf("%d at a time, %v", most, err)
	}
	cause := errors.New("cause")
	if err := kube.Parallel(t.Context(), 4, 40, func(_ context.Context, i int) error {
		if i == 7 {
			return cause
		}
		return nil
	}); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
	if err := kube.Parallel(t.Context(), 2, 3, func(context.Context, int) error { panic("for the test") }); err == nil {
		t.Error("a panic is no error")
	}
}
