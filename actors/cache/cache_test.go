package cache_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/cache/cachetest"
)

type realClock struct{}

func (realClock) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// running makes a cache over a memory source and runs it until the test ends.
func running(t *testing.T) (*cache.Cache, *cachetest.Memory) {
	t.Helper()
	source := cachetest.NewMemory()
	c := cache.New(source, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = c.Run(ctx, realClock{}, func() {}) }()
	t.Cleanup(func() { cancel(); <-done })
	return c, source
}

func pod(name, uid, node string, owners ...metav1.OwnerReference) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID(uid), OwnerReferences: owners,
			CreationTimestamp: metav1.Unix(1700000000, 0),
			Labels:            map[string]string{"app": "a"}, Finalizers: []string{"keep"},
		},
		Spec: corev1.PodSpec{NodeName: node},
	}
}

func owner(uid string) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: types.UID(uid), Controller: &yes, BlockOwnerDeletion: &yes}
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func sync(t *testing.T, c *cache.Cache) {
	t.Helper()
	if err := c.Sync(within(t)); err != nil {
		t.Fatal(err)
	}
}

func TestTypedReadsNeedNoLoop(t *testing.T) {
	source := cachetest.NewMemory()
	c := cache.New(source, slog.New(slog.DiscardHandler))
	revision := cachetest.Put(source, pod("p", "1", "n"))
	got, ok := cache.Get[*corev1.Pod](c, "ns", "p")
	if !ok || got.ResourceVersion != fmt.Sprint(revision) || got.Spec.NodeName != "n" {
		t.Fatalf("got %+v, %v", got, ok)
	}
	again, _ := cache.Get[*corev1.Pod](c, "ns", "p")
	if got != again {
		t.Error("the object was decoded twice")
	}
	if _, ok := cache.Get[*corev1.Pod](c, "ns", "q"); ok {
		t.Error("found what is not there")
	}
	if n := len(cache.List[*corev1.Pod](c, "", labels.SelectorFromSet(labels.Set{"app": "b"}))); n != 0 {
		t.Errorf("selector matched %d", n)
	}
}

func TestIndexesFollowWrites(t *testing.T) {
	c, source := running(t)
	cachetest.Put(source, pod("owned", "1", "n1", owner("rs-uid")))
	cachetest.Put(source, pod("free", "2", ""))
	sync(t, c)
	if pods := cache.Owned[*corev1.Pod](c, "rs-uid"); len(pods) != 1 || pods[0].Name != "owned" {
		t.Errorf("owned: %v", pods)
	}
	if pods := cache.Loose[*corev1.Pod](c, "ns", nil); len(pods) != 1 || pods[0].Name != "free" {
		t.Errorf("loose: %v", pods)
	}
	cachetest.Put(source, pod("free", "2", "n1", owner("rs-uid")))
	cachetest.Delete[*corev1.Pod](source, "ns", "owned")
	sync(t, c)
	if pods := c.PodsOn("n1"); len(pods) != 1 || pods[0].Name != "free" {
		t.Errorf("placed: %v", pods)
	}
	if len(cache.Loose[*corev1.Pod](c, "ns", nil)) != 0 || c.MetaByUID("1") != nil {
		t.Error("stale index")
	}
}

func TestMetadataOfEveryEncoding(t *testing.T) {
	c, source := running(t)
	cachetest.Put(source, pod("p", "1", "n", owner("rs-uid")))
	source.PutBytes("/registry/example.com/widgets/ns/w", []byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{
		"name":"w","namespace":"ns","uid":"2","deletionTimestamp":"2026-01-01T00:00:00Z",
		"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"1","blockOwnerDeletion":true}]}}`))
	source.PutBytes("/registry/example.com/widgets/ns/broken", []byte("k8s\x00\xff\xff"))
	sync(t, c)
	p := c.MetaByUID("1")
	if p == nil || p.Kind != "Pod" || p.Namespace != "ns" || !p.HasFinalizer("keep") || p.Deleting || p.Opaque ||
		len(p.Owners) != 1 || !p.Owners[0].Controller || !p.Owners[0].Blocks || p.Owners[0].UID != "rs-uid" || p.Created != 1700000000 || c.Contents("ns") != 3 {
		t.Fatalf("pod: %+v", p)
	}
	deps := c.Dependents("1")
	if len(deps) != 1 || deps[0].Resource().String() != "example.com/v1, Resource=widgets" || !deps[0].Deleting {
		t.Fatalf("dependents: %+v", deps)
	}
	if m := c.MetaByKey("/registry/example.com/widgets/ns/broken"); m == nil || !m.Opaque {
		t.Errorf("broken: %+v", m)
	}
}

func TestFeedSeesEveryChangeOverBrokenStreams(t *testing.T) {
	c, source := running(t)
	sync(t, c)
	feed := c.Subscribe(cache.KindOf[*corev1.Pod]())
	live := map[string]int64{}
	for i := range 300 {
		name := fmt.Sprint("p", rand.Intn(10))
		switch {
		case rand.Intn(3) == 0:
			cachetest.Delete[*corev1.Pod](source, "ns", name)
			delete(live, name)
		default:
			live[name] = cachetest.Put(source, pod(name, name, "n"))
		}
		if i%50 == 25 {
			source.Break()
		}
	}
	sync(t, c)
	seen := map[string]int64{}
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		changes, err := feed.Next(ctx)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range changes {
			name := change.Meta().Name
			if change.Old.ModRevision != seen[name] {
				t.Fatalf("%s: old is %d, was %d", name, change.Old.ModRevision, seen[name])
			}
			if seen[name] = change.New.ModRevision; change.Deleted() {
				delete(seen, name)
			}
		}
	}
	if fmt.Sprint(live) != fmt.Sprint(seen) {
		t.Errorf("feed ends at %v, store at %v", seen, live)
	}
}

func TestClosedFeedEnds(t *testing.T) {
	c, _ := running(t)
	feed := c.Subscribe()
	feed.Close()
	if _, err := feed.Next(within(t)); !errors.Is(err, cache.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestWaitForEndsWithItsContext(t *testing.T) {
	c, _ := running(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := c.WaitFor(ctx, 1<<40); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestSyncPassesRevisionsWithoutChanges(t *testing.T) {
	c, source := running(t)
	sync(t, c)
	want := source.Skip()
	sync(t, c)
	if c.Applied() < want {
		t.Errorf("applied %d, want %d", c.Applied(), want)
	}
}

func TestASourceThatIsDownDeletesNothing(t *testing.T) {
	c, source := running(t)
	cachetest.Put(source, pod("p", "1", "n"))
	sync(t, c)
	feed := c.Subscribe()
	source.Down()
	time.Sleep(300 * time.Millisecond)
	if c.MetaByUID("1") == nil {
		t.Error("taken for deleted")
	}
	if err := c.Sync(within(t)); !errors.Is(err, cache.ErrSourceDown) {
		t.Errorf("got %v", err)
	}
	source.Up()
	cachetest.Put(source, pod("q", "2", "n"))
	sync(t, c)
	if changes, err := feed.Next(within(t)); err != nil || len(changes) != 1 || changes[0].Meta().Name != "q" {
		t.Errorf("changes %v, %v", changes, err)
	}
}

func TestUndeclaredReadsAreFound(t *testing.T) {
	c, _ := running(t)
	handle := c.Declare(cache.KindOf[*corev1.Pod]())
	cache.List[*corev1.Pod](handle, "", nil)
	if found := c.Undeclared(); len(found) != 0 {
		t.Errorf("found %v", found)
	}
	cache.Get[*corev1.Node](handle, "", "n")
	handle.Names(cache.KindOf[*corev1.Secret]())
	cache.Get[*corev1.Service](c, "ns", "n")
	if found := c.Undeclared(); len(found) != 2 {
		t.Errorf("found %v", found)
	}
}
