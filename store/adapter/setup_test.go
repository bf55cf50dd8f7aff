package adapter_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	"k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/store/adapter"
	"github.com/nodeactor/nodeactor/store/engine"
	"github.com/nodeactor/nodeactor/test/etcdserver"
)

// valuePrefix is what the test transformer puts before every stored value.
const valuePrefix = "test!"

var (
	scheme = runtime.NewScheme()
	codecs = serializer.NewCodecFactory(scheme)
)

func init() {
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	utilruntime.Must(example.AddToScheme(scheme))
	utilruntime.Must(examplev1.AddToScheme(scheme))
}

func testCodec() runtime.Codec { return apitesting.TestCodec(codecs, examplev1.SchemeGroupVersion) }

// fixture is a store with the storage of example pods.
type fixture struct {
	*adapter.Store
	whole *store.Store
}

// onExternal makes openStore use an etcd of its own instead of the directory.
var onExternal bool

func openStore(t testing.TB, dir string) *store.Store {
	t.Helper()
	cfg := store.Config{Dir: dir, NodeName: "test", Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	if onExternal {
		server := etcdserver.Start(t)
		cfg.External = &store.External{Endpoints: []string{server.Endpoint}, CAFile: server.CAFile, CertFile: server.CertFile, KeyFile: server.KeyFile}
	}
	s, err := store.Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// setup opens a fresh store; with may change how pods are stored.
func setup(t testing.TB, with ...func(*adapter.Config)) (context.Context, *fixture) {
	t.Helper()
	whole := openStore(t, t.TempDir())
	cfg := adapter.Config{
		Prefix:         "/registry",
		ResourcePrefix: "/pods",
		GroupResource:  schema.GroupResource{Resource: "pods"},
		Codec:          testCodec(),
		Transformer:    storagetesting.NewPrefixTransformer([]byte(valuePrefix), false),
		NewFunc:        func() runtime.Object { return &example.Pod{} },
		NewListFunc:    func() runtime.Object { return &example.PodList{} },
	}
	for _, f := range with {
		f(&cfg)
	}
	s, err := adapter.New(whole.Backend(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return context.Background(), &fixture{s, whole}
}

// UpdatePrefixTransformer implements storagetesting.InterfaceWithPrefixTransformer.
func (f *fixture) UpdatePrefixTransformer(modify storagetesting.PrefixTransformerModifier) func() {
	old := f.SwapTransformer(nil)
	clone := *old.(*storagetesting.PrefixTransformer)
	f.SwapTransformer(modify(&clone))
	return func() { f.SwapTransformer(old) }
}

// UpdateTransformer implements storagetesting.InterfaceWithTransformerOverride.
func (f *fixture) UpdateTransformer(modify storagetesting.TransformerModifier) func() {
	old := f.SwapTransformer(nil)
	f.SwapTransformer(modify(old))
	return func() { f.SwapTransformer(old) }
}

// invariants checks what is really stored under a key.
func (f *fixture) invariants(ctx context.Context, t *testing.T, key string) {
	t.Helper()
	item, ok := f.whole.Get("/registry" + key)
	if !ok {
		if item, ok = f.whole.Get(key); !ok {
			t.Fatalf("nothing is stored under %s", key)
		}
	}
	obj, err := runtime.Decode(testCodec(), item.Value[len(valuePrefix):])
	if err != nil {
		t.Fatalf("cannot decode %q: %v", item.Value, err)
	}
	if pod := obj.(*example.Pod); pod.ResourceVersion != "" {
		t.Errorf("stored object has resource version %q", pod.ResourceVersion)
	}
}

// increaseRV writes a key that nobody lists.
func (f *fixture) increaseRV(ctx context.Context, t *testing.T) int64 {
	t.Helper()
	res, err := f.whole.Backend().Engine.Txn(ctx, engine.Write{Key: "increaseRV", Expect: engine.AnyRevision, Value: []byte("ok")})
	if err == nil {
		err = f.whole.WaitApplied(ctx, res.Revision)
	}
	if err != nil {
		t.Fatal(err)
	}
	return res.Revision
}

func (f *fixture) compact(ctx context.Context, t *testing.T, resourceVersion string) {
	t.Helper()
	rv, err := storage.APIObjectVersioner{}.ParseResourceVersion(resourceVersion)
	// The suite expects that compacting is itself a write, as upstream's bookkeeping of it is, and that of API servers that take turns.
	if !onExternal {
		f.increaseRV(ctx, t)
	}
	if err == nil {
		err = f.whole.CompactTo(ctx, int64(rv))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// failing is something that can be told to fail.
type failing struct{ fail atomic.Bool }

func (f *failing) set(fail bool) { f.fail.Store(fail) }

func (f *failing) err() error {
	if f.fail.Load() {
		return errors.New("synthetic error")
	}
	return nil
}

type failingTransformer struct {
	value.Transformer
	failing
}

func (t *failingTransformer) TransformFromStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, bool, error) {
	if err := t.err(); err != nil {
		return nil, false, err
	}
	return t.Transformer.TransformFromStorage(ctx, data, dataCtx)
}

type failingCodec struct {
	runtime.Codec
	failing
}

func (c *failingCodec) Decode(data []byte, gvk *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if err := c.err(); err != nil {
		return nil, nil, err
	}
	return c.Codec.Decode(data, gvk, into)
}

var errBitsFlipped = adapter.NewCorruptError(fmt.Errorf("bits flipped"))
