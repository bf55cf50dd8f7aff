package store_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"

	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/store/engine"
	"github.com/nodeactor/nodeactor/test/etcdserver"
)

func openExternal(t *testing.T, server *etcdserver.Server) *store.Store {
	t.Helper()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError + 1}))
	s, err := store.Open(context.Background(), store.Config{NodeName: "test", Log: log, External: &store.External{
		Endpoints: []string{server.Endpoint}, CAFile: server.CAFile, CertFile: server.CertFile, KeyFile: server.KeyFile,
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

func configMaps(t *testing.T, s *store.Store) storage.Interface {
	return storageOf(t, s.RESTOptions(secretFactory{}), schema.GroupResource{Resource: "configmaps"},
		func() runtime.Object { return &corev1.ConfigMap{} }, func() runtime.Object { return &corev1.ConfigMapList{} })
}

// TestTwoStoresOnOneEtcd: what one has acknowledged the other's next consistent read shows, whichever asks first.
func TestTwoStoresOnOneEtcd(t *testing.T) {
	server := etcdserver.Start(t)
	a, b := configMaps(t, openExternal(t, server)), configMaps(t, openExternal(t, server))
	ctx := context.Background()
	everything := storage.ListOptions{Recursive: true, Predicate: storage.Everything}
	for i := range 60 {
		writer, reader := a, b
		if i%2 == 1 {
			writer, reader = b, a
		}
		name := fmt.Sprintf("m%d", i)
		key := "/configmaps/ns/" + name
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string]string{"v": "1"}}
		if err := writer.Create(ctx, key, m, &corev1.ConfigMap{}, 0); err != nil {
			t.Fatal(err)
		}
		var list corev1.ConfigMapList
		if err := reader.GetList(ctx, "/configmaps", everything, &list); err != nil || len(list.Items) != i+1 {
			t.Fatalf("round %d: the other lists %d, %v", i, len(list.Items), err)
		}
		set := func(value string) storage.UpdateFunc {
			return func(in runtime.Object, _ storage.ResponseMeta) (runtime.Object, *uint64, error) {
				in.(*corev1.ConfigMap).Data["v"] += value
				return in, nil, nil
			}
		}
		if err := reader.GuaranteedUpdate(ctx, key, &corev1.ConfigMap{}, false, nil, set("2"), nil); err != nil {
			t.Fatal(err)
		}
		var got corev1.ConfigMap
		if err := writer.Get(ctx, key, storage.GetOptions{}, &got); err != nil || got.Data["v"] != "12" {
			t.Fatalf("round %d: read %q, %v", i, got.Data["v"], err)
		}
	}
	contend(t, []storage.Interface{a, b})
}

// TestExternalListsWhatWasAcknowledged: a write by somebody who does not wait for any watch is in the next consistent list.
func TestExternalListsWhatWasAcknowledged(t *testing.T) {
	server := etcdserver.Start(t)
	maps, c, ctx := configMaps(t, openExternal(t, server)), server.Client(), context.Background()
	for i := range 300 {
		key := fmt.Sprintf("/registry/configmaps/ns/m%d", i)
		if _, err := c.Put(ctx, key, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m%d","namespace":"ns"}}`, i)); err != nil {
			t.Fatal(err)
		}
		var list corev1.ConfigMapList
		if err := maps.GetList(ctx, "/configmaps", storage.ListOptions{Recursive: true, Predicate: storage.Everything}, &list); err != nil || len(list.Items) != i+1 {
			t.Fatalf("round %d: %d listed, %v", i, len(list.Items), err)
		}
	}
}

// contend lets both add to one object at the same time: no addition is lost.
func contend(t *testing.T, all []storage.Interface) {
	t.Helper()
	ctx := context.Background()
	var group sync.WaitGroup
	const each = 25
	for _, s := range all {
		group.Go(func() {
			for range each {
				err := s.GuaranteedUpdate(ctx, "/configmaps/ns/shared", &corev1.ConfigMap{}, true, nil, func(in runtime.Object, _ storage.ResponseMeta) (runtime.Object, *uint64, error) {
					m := in.(*corev1.ConfigMap)
					m.Namespace, m.Name = "ns", "shared"
					if m.Data == nil {
						m.Data = map[string]string{}
					}
					m.Data["v"] += "x"
					return m, nil, nil
				}, nil)
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	var got corev1.ConfigMap
	if err := all[0].Get(ctx, "/configmaps/ns/shared", storage.GetOptions{}, &got); err != nil || len(got.Data["v"]) != each*len(all) {
		t.Fatalf("%d additions of %d are there, %v", len(got.Data["v"]), each*len(all), err)
	}
}

// TestExternalWatchersSeeNoGap: watchers of one store see every write of another over restarts of the server, once and in order.
func TestExternalWatchersSeeNoGap(t *testing.T) {
	server := etcdserver.Start(t)
	a, b := openExternal(t, server), openExternal(t, server)
	sub := b.Subscribe(store.SubscribeOptions{Prefixes: []string{"/registry/pods/"}})
	defer sub.Close()
	want := map[string]int64{}
	for i := range 4 {
		if i > 0 {
			server.Stop()
			server.Start()
		}
		for j := range 10 {
			key := fmt.Sprintf("/registry/pods/ns/p%d-%d", i, j)
			want[key] = persist(t, a, key)
		}
	}
	last := int64(0)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for len(want) > 0 {
		events, err := sub.Next(ctx)
		if err != nil {
			t.Fatalf("%d writes were not seen: %v", len(want), err)
		}
		for _, ev := range events {
			if ev.Revision <= last || ev.Type != store.Added {
				t.Fatalf("%v of %s at %d after %d", ev.Type, ev.Item.Key, ev.Revision, last)
			}
			last = ev.Revision
			if want[ev.Item.Key] == ev.Revision {
				delete(want, ev.Item.Key)
			}
		}
	}
	if a.Err() != nil || b.Err() != nil {
		t.Fatalf("restarts of the server are no failure of a store: %v, %v", a.Err(), b.Err())
	}
}

// persist writes a key until that is acknowledged. Its first version's revision is returned.
func persist(t *testing.T, s *store.Store, key string) int64 {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		res, err := s.Backend().Engine.Txn(ctx, engine.Write{Key: key, Value: []byte("v")})
		cancel()
		switch {
		case err == nil && res.Done:
			return res.Revision
		case err == nil && res.Current != nil:
			return res.Current.ModRevision // a try whose answer was lost
		case time.Now().After(deadline):
			t.Fatalf("%s: %v", key, err)
		}
	}
}

// TestExternalStoreBehindTheHistory: a store that was cut off while others wrote and forgot is filled anew, and its watchers are told to list.
func TestExternalStoreBehindTheHistory(t *testing.T) {
	server := etcdserver.Start(t)
	s := openExternal(t, server)
	persist(t, s, "/registry/pods/ns/kept")
	gone := persist(t, s, "/registry/pods/ns/gone")
	if err := s.WaitApplied(context.Background(), gone); err != nil {
		t.Fatal(err)
	}
	kept, _ := s.Get("/registry/pods/ns/kept")
	sub := s.Subscribe(store.SubscribeOptions{Prefixes: []string{"/registry/pods/"}})
	defer sub.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	newest := behindHistory(ctx, t, server)
	for err := s.Healthy(ctx); err != nil; err = s.Healthy(ctx) {
		if !errors.Is(err, store.ErrAway) {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	items, rev := s.List("/registry/pods/")
	if len(items) != 2 || items[0] != kept || items[1].Key != "/registry/pods/ns/new" || rev < newest {
		t.Fatalf("%d items at %d, want 2 at %d", len(items), rev, newest)
	}
	if _, err := sub.Next(ctx); !errors.Is(err, store.ErrCompacted) {
		t.Fatalf("a watcher from before the gap: %v", err)
	}
	later := s.Subscribe(store.SubscribeOptions{Prefixes: []string{"/registry/pods/"}, After: rev})
	defer later.Close()
	persist(t, s, "/registry/pods/ns/later")
	if got := next(t, later, 1); got != "ADDED later ->v;" {
		t.Fatalf("after the gap: %s", got)
	}
}

// behindHistory deletes and writes while the store cannot look, and forgets that. The server is moved to an address the store does not know.
func behindHistory(ctx context.Context, t *testing.T, server *etcdserver.Server) int64 {
	t.Helper()
	back := server.Hide()
	c := server.Client()
	if _, err := c.Delete(ctx, "/registry/pods/ns/gone"); err != nil {
		t.Fatal(err)
	}
	put, err := c.Put(ctx, "/registry/pods/ns/new", "v")
	if err == nil {
		_, err = c.Compact(ctx, put.Header.Revision)
	}
	if err != nil {
		t.Fatal(err)
	}
	back()
	return put.Header.Revision
}
