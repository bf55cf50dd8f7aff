package eventsttl

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/cache/cachetest"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

// TestF020_OldEventsVanishAndThereAreNeverTooMany runs the actor in virtual time.
func TestF020_OldEventsVanishAndThereAreNeverTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := cachetest.NewMemory()
		c := cache.New(source, slog.New(slog.DiscardHandler))
		put := func(name string, age time.Duration) {
			at := metav1.NewTime(time.Now().Add(-age))
			meta := metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), CreationTimestamp: at}
			cachetest.Put(source, &corev1.Event{ObjectMeta: meta, LastTimestamp: at})
		}
		put("old", 61*time.Minute)
		put("counted", 55*time.Minute)
		for i := range most + 9 {
			put(fmt.Sprint("e", i), time.Minute)
		}
		stop := play(t, c, deletesFrom(source))
		defer stop()
		held := func() int { return len((&retainer{cache: c}).events()) }
		has := func(name string) bool { return c.Has(kind, "ns", name) }
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := held(); n != most || has("old") || has("counted") || has("e8") || !has("e9") {
			t.Errorf("after a minute there are %d: old %v, counted %v, e8 %v, e9 %v", n, has("old"), has("counted"), has("e8"), has("e9"))
		}
		cachetest.Delete[*corev1.Event](source, "ns", "e9")
		put("aging", 50*time.Minute)
		time.Sleep(9 * time.Minute)
		synctest.Wait()
		if n := held(); n != most || !has("aging") {
			t.Errorf("before it is an hour old there are %d: aging %v", n, has("aging"))
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if n := held(); n != most-1 || has("aging") {
			t.Errorf("when it is an hour old there are %d: aging %v", n, has("aging"))
		}
	})
}

// deletesFrom is a client whose deletions of Events reach the source.
func deletesFrom(source *cachetest.Memory) *fake.Clientset {
	api := fake.NewClientset()
	api.PrependReactor("delete", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		cachetest.Delete[*corev1.Event](source, action.GetNamespace(), action.(clienttesting.DeleteAction).GetName())
		return true, nil, nil
	})
	return api
}

// play runs cache and actor as the tree does.
func play(t *testing.T, c *cache.Cache, api *fake.Clientset) (stop func()) {
	t.Helper()
	system, err := supervision.New(supervision.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	root := catalog.Row("controllers")
	root.Children = []supervision.Spec{cache.Spec(c), Spec(c, api)}
	if err := system.Start(root); err != nil {
		t.Fatal(err)
	}
	return func() { system.Stop(context.Background()) }
}
