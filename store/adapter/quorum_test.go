package adapter_test

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/warning"

	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/store/adapter"
)

// threeStores are members of one store in this process.
func threeStores(t *testing.T) []*store.Store {
	t.Helper()
	cluster, addrs := map[string]string{}, map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addrs[name], cluster[name] = l.Addr().String(), "http://"+l.Addr().String()
		_ = l.Close()
	}
	all, wg := make([]*store.Store, 3), sync.WaitGroup{}
	for i, name := range []string{"a", "b", "c"} {
		cfg := store.Config{Dir: t.TempDir(), NodeName: name, Log: slog.New(slog.DiscardHandler), Peers: &store.Peers{Listen: addrs[name], URL: cluster[name], Cluster: cluster, Token: t.Name()}}
		wg.Go(func() {
			var err error
			if all[i], err = store.Open(context.Background(), cfg); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	t.Cleanup(func() {
		for _, s := range all {
			_ = s.Close(context.Background())
		}
	})
	return all
}

// warnings are what a client is told beside its answer.
type warnings struct{ text []string }

func (w *warnings) AddWarning(_, text string) { w.text = append(w.text, text) }

// TestP30_WithoutQuorum: a member that is left alone answers within a second: writes and consistent reads with who is missing and since when,
// and 503; other reads are served, and marked as perhaps stale.
func TestP30_WithoutQuorum(t *testing.T) {
	all := threeStores(t)
	s, err := adapter.New(all[0].Backend(), adapter.Config{
		Prefix: "/registry", ResourcePrefix: "/pods", GroupResource: schema.GroupResource{Resource: "pods"}, Codec: testCodec(),
		NewFunc: func() runtime.Object { return &example.Pod{} }, NewListFunc: func() runtime.Object { return &example.PodList{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	pod := &example.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "one"}}
	if err := s.Create(ctx, "/pods/x/one", pod, nil, 0); err != nil {
		t.Fatal(err)
	}
	_, _ = all[1].Close(ctx), all[2].Close(ctx)
	for end := time.Now().Add(20 * time.Second); all[0].Outage() == nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the loss of the quorum is not noticed")
		}
	}
	for what, f := range map[string]func() error{
		"create": func() error {
			return s.Create(ctx, "/pods/x/two", &example.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "two"}}, nil, 0)
		},
		"get":  func() error { return s.Get(ctx, "/pods/x/one", storage.GetOptions{}, &example.Pod{}) },
		"list": func() error { return s.GetList(ctx, "/pods", everything(""), &example.PodList{}) },
	} {
		begin := time.Now()
		err := f()
		if after, ok := apierrors.SuggestsClientDelay(err); !apierrors.IsServiceUnavailable(err) || !ok || after == 0 || !strings.Contains(err.Error(), "b, c of 3 members missing") {
			t.Errorf("%s: got %v", what, err)
		}
		if took := time.Since(begin); took > time.Second {
			t.Errorf("%s: answered after %s", what, took)
		}
	}
	var told warnings
	stale, list := &example.Pod{}, &example.PodList{}
	marked := warning.WithWarningRecorder(ctx, &told)
	if err := s.Get(marked, "/pods/x/one", storage.GetOptions{ResourceVersion: "0"}, stale); err != nil || stale.Name != "one" {
		t.Errorf("a read that may be stale: %v, %v", stale, err)
	}
	if err := s.GetList(marked, "/pods", everything("0"), list); err != nil || len(list.Items) != 1 {
		t.Errorf("a list that may be stale: %v, %v", list, err)
	}
	if len(told.text) != 2 || !strings.Contains(told.text[0], "may be stale") || !strings.Contains(told.text[0], "b, c of 3") {
		t.Errorf("clients were told %q", told.text)
	}
}

func everything(version string) storage.ListOptions {
	return storage.ListOptions{ResourceVersion: version, Predicate: storage.Everything, Recursive: true}
}
