package controllers_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/nodeactor/nodeactor/actors/apiserver"
	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/controllers"
	"github.com/nodeactor/nodeactor/actors/controllers/replicagroup"
	"github.com/nodeactor/nodeactor/actors/hotloop"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
	"github.com/nodeactor/nodeactor/cluster/identity"
	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

// patience is how long a state is waited for; the machine may be loaded.
const patience = 60 * time.Second

// verbose tells whether -v was given: with -json, by which results are kept, all tests are verbose and nobody reads it.
func verbose() bool { return flag.Lookup("test.v").Value.String() == "true" }

func TestMain(m *testing.M) {
	flag.Parse()
	if !verbose() {
		klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	}
	os.Exit(m.Run())
}

// plane is a control plane without scheduler and kubelet: store, API, cache and all controllers. Tests play the kubelet.
type plane struct {
	*testing.T
	ctx     context.Context
	store   *store.Store
	client  kubernetes.Interface
	dynamic dynamic.Interface
	cache   *cache.Cache
	breaker *kube.Breaker
	system  *supervision.System
	counted *prometheus.Registry
	// circles is set by tests in which a controller writes in circles.
	circles bool
}

func newPlane(t *testing.T) *plane {
	t.Helper()
	return newPlaneOver(t, func(rt http.RoundTripper) http.RoundTripper { return rt })
}

// newPlaneOver is newPlane with something between the controllers and the API.
func newPlaneOver(t *testing.T, between func(http.RoundTripper) http.RoundTripper) *plane {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	t.Cleanup(cancel)
	p := &plane{T: t, ctx: ctx}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	if verbose() {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	dir := t.TempDir()
	id, err := identity.Load(dir + "/pki")
	p.must(err)
	p.store, err = store.Open(ctx, store.Config{Dir: dir + "/store", NodeName: "test", Log: log})
	p.must(err)
	t.Cleanup(func() { _ = p.store.Close(context.Background()) })
	p.cache = cache.New(cache.FromStore(p.store), log)
	p.breaker = kube.NewBreaker(p.cache, supervision.RealClock())
	api, err := apiserver.New(ctx, apiserver.Config{Store: p.store, Identity: id, Log: log, AdvertiseAddr: "192.0.2.1:6443", Observe: p.observe})
	p.must(err)
	t.Cleanup(api.Close)
	p.must(api.Bootstrap(ctx))
	config := api.InProcess(identity.AdminUser, identity.MastersGroup)
	p.client, p.dynamic = kubernetes.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config)
	config = api.InProcess(identity.AdminUser, identity.MastersGroup)
	config.Transport = p.breaker.Guard(between(config.Transport))
	p.must(replicagroup.Define(ctx, p.client.Discovery().RESTClient()))
	p.start(log, config)
	return p
}

// observe tells the breaker of what others write.
func (p *plane) observe(ctx context.Context, w apiserver.Write) {
	if _, ours := kube.WriterOf(ctx); ours {
		return
	}
	object := hotloop.Object{Group: w.Group, Resource: w.Resource, Namespace: w.Namespace, Name: w.Name}
	if !w.Answered {
		p.breaker.Coming(w.User, w.Manager, object)
		return
	}
	p.breaker.Seen(w.User, w.Manager, w.Method, object)
}

// start brings up the tree of cache and controllers.
func (p *plane) start(log *slog.Logger, config *rest.Config) {
	clock := supervision.RealClock()
	client := kubernetes.NewForConfigOrDie(config)
	events := kube.NewRecorder(client.CoreV1(), clock, log)
	group := events.Start(context.Background())
	p.counted = prometheus.NewRegistry()
	counts, err := kube.NewMetrics(p.counted)
	p.must(err)
	p.system, err = supervision.New(supervision.Config{Clock: clock, Log: log})
	p.must(err)
	root := catalog.Row("controllers")
	root.Children = append([]supervision.Spec{cache.Spec(p.cache)}, controllers.Specs(controllers.Deps{
		Cache: p.cache, Client: client, Metadata: metadata.NewForConfigOrDie(config), Clock: clock, Log: log, Events: events,
		RootCA: func() []byte { return []byte("CA") }, Breaker: p.breaker, InjectFaults: true, Metrics: counts,
	})...)
	p.must(p.system.Start(root))
	p.Cleanup(func() {
		p.system.Stop(context.Background())
		if n := p.trips(); (n > 0) != p.circles {
			p.Errorf("%d times a controller was paused for writing in circles", n)
		}
		if kinds := p.cache.Undeclared(); len(kinds) != 0 {
			p.Errorf("read without being declared: %v", kinds)
		}
		group.Cancel()
		_ = group.Wait()
	})
}

// trips is how many times a controller was paused for writing in circles.
func (p *plane) trips() (n int) {
	families, err := p.counted.Gather()
	p.must(err)
	for _, family := range families {
		if family.GetName() == "nodeactor_hot_loops_total" {
			for _, sample := range family.GetMetric() {
				n += int(sample.GetCounter().GetValue())
			}
		}
	}
	return n
}

func (p *plane) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// eventually waits until a state holds.
func (p *plane) eventually(what string, holds func() bool) {
	p.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if holds() {
			return
		}
	}
	p.Fatalf("never: %s", what)
}

func (p *plane) pods(ns string) []corev1.Pod {
	p.Helper()
	list, err := p.client.CoreV1().Pods(ns).List(p.ctx, metav1.ListOptions{})
	p.must(err)
	return list.Items
}

// kubelet makes every pod of a namespace run and be ready, and lets deleted ones go, until the test ends or stop is called.
func (p *plane) kubelet(ns string) (stop func()) {
	ctx, cancel := context.WithCancel(p.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
			list, err := p.client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
			if err != nil {
				continue
			}
			for i := range list.Items {
				p.play(ctx, &list.Items[i])
			}
		}
	}()
	stop = func() { cancel(); <-done }
	p.Cleanup(stop)
	return stop
}

func (p *plane) play(ctx context.Context, pod *corev1.Pod) {
	client := p.client.CoreV1().Pods(pod.Namespace)
	now := int64(0)
	switch {
	case pod.DeletionTimestamp != nil:
		_ = client.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	case pod.Spec.NodeName == "":
		_ = client.Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: "n1"}}, metav1.CreateOptions{})
	case pod.Status.Phase != corev1.PodRunning && pod.Status.Phase != corev1.PodFailed:
		p.runs(ctx, pod)
	}
}

func (p *plane) runs(ctx context.Context, pod *corev1.Pod) {
	ip := fmt.Sprintf("10.244.0.%d", pod.UID[0]%200+1)
	patch := fmt.Sprintf(`{"status":{"phase":"Running","podIP":%q,"podIPs":[{"ip":%q}],"conditions":[{"type":"Ready","status":"True","lastTransitionTime":%q}]}}`,
		ip, ip, time.Now().UTC().Format(time.RFC3339))
	_, _ = p.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
}

func gone(err error) bool { return apierrors.IsNotFound(err) }
