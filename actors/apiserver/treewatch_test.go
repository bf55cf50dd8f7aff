package apiserver

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"

	api "github.com/nodeactor/nodeactor/actors/apiserver/supervisionapi"
	"github.com/nodeactor/nodeactor/cluster/identity"
)

// expect reads events until one has the type and the name, and returns the object.
func expect(t *testing.T, w watch.Interface, kind watch.EventType, name string) *unstructured.Unstructured {
	t.Helper()
	late := time.After(testTimeout)
	var seen []string
	for {
		select {
		case e, open := <-w.ResultChan():
			if !open {
				t.Fatalf("the watch ended before %s %s; there was %v", kind, name, seen)
			}
			u, _ := e.Object.(*unstructured.Unstructured)
			if u == nil {
				t.Fatalf("got %+v", e)
			}
			if e.Type == kind && u.GetName() == name {
				return u
			}
			seen = append(seen, string(e.Type)+" "+u.GetName())
		case <-late:
			t.Fatalf("there is no %s %s, but %v", kind, name, seen)
		}
	}
}

func (f *treeFixture) watch(t *testing.T, options metav1.ListOptions) watch.Interface {
	t.Helper()
	w, err := f.client(t, api.Actors).Watch(f.ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

func TestActorsAreWatched(t *testing.T) {
	f := newTreeFixture(t)
	const web = "node:manifests:default:web"
	all := f.watch(t, metav1.ListOptions{})
	expect(t, all, watch.Added, "node:scheduler")
	f.add(t, "default:web")
	expect(t, all, watch.Added, web)
	parked := f.watch(t, metav1.ListOptions{FieldSelector: "status.state=Parked"})
	eventually(t, f.ctx, func() error {
		switch s := f.actor(t, web).Status; s.State {
		case api.Parked:
			return nil
		case api.BackingOff:
			f.pool.Wake("default:web")
		case api.Running:
			f.pool.Send("default:web", func() error { panic("poison") })
		}
		return errors.New("it is not parked")
	})
	u := expect(t, parked, watch.Added, web)
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	reasons := []string{}
	for _, c := range conditions {
		reasons = append(reasons, c.(map[string]any)["reason"].(string))
	}
	if !slices.Contains(reasons, api.ReasonCrashLoop) {
		t.Errorf("got %v", reasons)
	}
	f.pool.Stop("default:web")
	expect(t, all, watch.Deleted, web)
	expect(t, parked, watch.Deleted, web)
}

// TestWatchGoesOnWhereAListEnded: what happens between a list and its watch, or between two watches, is not missed.
func TestWatchGoesOnWhereAListEnded(t *testing.T) {
	f := newTreeFixture(t)
	f.add(t, "a")
	list, err := f.client(t, api.Actors).List(f.ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f.add(t, "b")
	f.pool.Stop("a")
	eventually(t, f.ctx, func() error {
		if f.pool.Len() != 1 {
			return context.DeadlineExceeded
		}
		return nil
	})
	w := f.watch(t, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	changed := map[string]watch.EventType{}
	var last string
	for len(changed) < 2 {
		e := <-w.ResultChan()
		u := e.Object.(*unstructured.Unstructured)
		changed[u.GetName()], last = e.Type, u.GetResourceVersion()
	}
	if changed["node:manifests:a"] != watch.Deleted || changed["node:manifests:b"] == watch.Deleted || len(changed) != 2 {
		t.Errorf("got %v", changed)
	}
	w.Stop()
	f.add(t, "c")
	expect(t, f.watch(t, metav1.ListOptions{ResourceVersion: last}), watch.Modified, "node:manifests:c")
	for _, version := range []string{"1", "9" + last} {
		if _, err := f.client(t, api.Actors).Watch(f.ctx, metav1.ListOptions{ResourceVersion: version}); !apierrors.IsResourceExpired(err) {
			t.Errorf("%s: got %v", version, err)
		}
	}
}

func TestInformerFollowsTheTree(t *testing.T) {
	f := newTreeFixture(t)
	factory := dynamicinformer.NewDynamicSharedInformerFactory(dynamic.NewForConfigOrDie(f.InProcess(identity.AdminUser, identity.MastersGroup)), 0)
	actors := factory.ForResource(api.GroupVersion.WithResource(api.Actors)).Informer()
	policies := factory.ForResource(api.GroupVersion.WithResource(api.FaultPolicies)).Informer()
	ctx, cancel := context.WithCancel(f.ctx)
	defer factory.Shutdown()
	defer cancel()
	factory.Start(ctx.Done())
	for what, ok := range factory.WaitForCacheSync(ctx.Done()) {
		if !ok {
			t.Fatalf("%s is not synced", what)
		}
	}
	f.add(t, "default:web")
	eventually(t, f.ctx, func() error {
		if keys := strings.Join(actors.GetStore().ListKeys(), " "); !strings.Contains(keys, "node:manifests:default:web") {
			return apierrors.NewNotFound(api.Resource(api.Actors), keys)
		}
		return nil
	})
	if keys := policies.GetStore().ListKeys(); len(keys) != 4 {
		t.Errorf("got %v", keys)
	}
}
