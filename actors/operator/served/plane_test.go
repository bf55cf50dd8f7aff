package served_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/nodeactor/nodeactor/actors/apiserver"
	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/operator"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
	"github.com/nodeactor/nodeactor/actors/operator/served"
	"github.com/nodeactor/nodeactor/cluster/identity"
	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

// patience is how long a state is waited for; the machine may be loaded.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	flag.Parse()
	if !testing.Verbose() {
		klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	}
	os.Exit(m.Run())
}

// page is the specification of the tests' operator.
type page struct {
	Text   string `json:"text"`
	Copies int    `json:"copies" min:"1" max:"9" default:"1"`
}

func (page) Kind() string { return "Page" }

// pages is the tests' operator: what it does can be changed.
type pages struct {
	mu        sync.Mutex
	act       func(ctx context.Context, s *operator.ManifestState[page]) (operator.Action, error)
	passes    map[string][]page
	finalized map[string]int
	// closing, when set, is called by each Finalize.
	closing func()
}

func newPages() *pages { return &pages{passes: map[string][]page{}, finalized: map[string]int{}} }

// Reconcile implements operator.Operator.
func (p *pages) Reconcile(ctx context.Context, s *operator.ManifestState[page]) (operator.Action, error) {
	p.mu.Lock()
	p.passes[s.Manifest.Name] = append(p.passes[s.Manifest.Name], s.Manifest.Spec)
	act := p.act
	p.mu.Unlock()
	if act != nil {
		return act(ctx, s)
	}
	return operator.None(), s.SetStatus(map[string]any{"text": s.Manifest.Spec.Text})
}

// Finalize implements operator.Finalizer.
func (p *pages) Finalize(_ context.Context, s *operator.ManifestState[page]) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finalized[s.Manifest.Name]++
	if p.closing != nil {
		p.closing()
	}
	return nil
}

func (p *pages) do(act func(ctx context.Context, s *operator.ManifestState[page]) (operator.Action, error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.act = act
}

func (p *pages) count(name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.passes[name])
}

// plane is a node's store, API, cache and operators, and nothing else of it.
type plane struct {
	*testing.T
	ctx     context.Context
	log     *slog.Logger
	config  *rest.Config
	dynamic dynamic.Interface
	kube    kubernetes.Interface
	cache   *cache.Cache
	breaker *kube.Breaker
	system  *supervision.System
	// cut, when set, is what the operators' requests end with.
	cut struct {
		sync.Mutex
		err error
	}
}

func newPlane(t *testing.T) *plane {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	t.Cleanup(cancel)
	p := &plane{T: t, ctx: ctx, log: slog.New(slog.DiscardHandler)}
	if testing.Verbose() {
		p.log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	dir := t.TempDir()
	id, err := identity.Load(dir + "/pki")
	p.must(err)
	opened, err := store.Open(ctx, store.Config{Dir: dir + "/store", NodeName: "test", Log: p.log})
	p.must(err)
	t.Cleanup(func() { _ = opened.Close(context.Background()) })
	p.cache = cache.New(cache.FromStore(opened), p.log)
	p.breaker = kube.NewBreaker(p.cache, supervision.RealClock())
	api, err := apiserver.New(ctx, apiserver.Config{Store: opened, Identity: id, Log: p.log, AdvertiseAddr: "192.0.2.1:6443"})
	p.must(err)
	t.Cleanup(api.Close)
	p.must(api.Bootstrap(ctx))
	config := api.InProcess(identity.AdminUser, identity.MastersGroup)
	p.dynamic, p.kube = dynamic.NewForConfigOrDie(dynamic.ConfigFor(config)), kubernetes.NewForConfigOrDie(config)
	p.config = api.InProcess(identity.AdminUser, identity.MastersGroup)
	p.config.Transport = p.breaker.Guard(cutter{p, p.config.Transport})
	return p
}

// cutter lets the operators' requests fail while the plane says so.
type cutter struct {
	plane *plane
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (c cutter) RoundTrip(r *http.Request) (*http.Response, error) {
	c.plane.cut.Lock()
	err := c.plane.cut.err
	c.plane.cut.Unlock()
	if err != nil {
		return nil, err
	}
	return c.next.RoundTrip(r)
}

func (p *plane) sever(err error) {
	p.cut.Lock()
	defer p.cut.Unlock()
	p.cut.err = err
}

// serve starts the operators; stop ends them as the end of the process does.
func (p *plane) serve(ops ...*served.Operator) (stop func()) {
	p.Helper()
	clock := supervision.RealClock()
	client := kubernetes.NewForConfigOrDie(p.config)
	events := kube.NewRecorder(client.CoreV1(), clock, p.log)
	group := events.Start(context.Background())
	counts, err := kube.NewMetrics(prometheus.NewRegistry())
	p.must(err)
	deps := kube.Deps{Cache: p.cache, Clock: clock, Log: p.log, Metrics: counts, Breaker: p.breaker, InjectFaults: true}
	deps.Reporter = kube.NewReporter(deps, metadata.NewForConfigOrDie(metadata.ConfigFor(p.config)), events)
	p.must(served.Check(ops))
	all, err := served.Controllers(ops, served.Deps{
		Config: func(string) *rest.Config { return p.config }, Clock: clock, Log: p.log, Events: events,
	})
	p.must(err)
	root := catalog.Row("controllers")
	root.Children = []supervision.Spec{cache.Spec(p.cache), deps.Reporter.Spec()}
	for _, c := range all {
		root.Children = append(root.Children, kube.Spec(c, deps))
	}
	system, err := supervision.New(supervision.Config{Clock: clock, Log: p.log})
	p.must(err)
	p.system = system
	p.must(system.Start(root))
	var once sync.Once
	stop = func() {
		once.Do(func() {
			system.Stop(context.Background())
			group.Cancel()
			_ = group.Wait()
		})
	}
	p.Cleanup(stop)
	return stop
}

func (p *plane) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// eventually waits until a state holds.
func (p *plane) eventually(what string, holds func() error) {
	p.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if err = holds(); err == nil {
			return
		}
	}
	p.Fatalf("never: %s: %v", what, err)
}

var pageResource = schema.GroupVersionResource{Group: served.DefaultGroup, Version: served.DefaultVersion, Resource: "pages"}

// pages is the client of the tests' kind.
func (p *plane) pages() dynamic.ResourceInterface {
	return p.dynamic.Resource(pageResource).Namespace("default")
}

func pageObject(name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": served.DefaultGroup + "/" + served.DefaultVersion, "kind": "Page",
		"metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

// create makes a page, as soon as its kind is served.
func (p *plane) create(name, text string) *unstructured.Unstructured {
	p.Helper()
	var made *unstructured.Unstructured
	p.eventually("the page "+name+" is created", func() (err error) {
		made, err = p.pages().Create(p.ctx, pageObject(name, map[string]any{"text": text}), metav1.CreateOptions{})
		return err
	})
	return made
}

func (p *plane) get(name string) *unstructured.Unstructured {
	p.Helper()
	object, err := p.pages().Get(p.ctx, name, metav1.GetOptions{})
	p.must(err)
	return object
}

func (p *plane) update(name string, change func(spec map[string]any)) {
	p.Helper()
	p.eventually("the page "+name+" is updated", func() error {
		object := p.get(name)
		change(object.Object["spec"].(map[string]any))
		_, err := p.pages().Update(p.ctx, object, metav1.UpdateOptions{})
		return err
	})
}

// field reads one word of an object.
func field(o *unstructured.Unstructured, path string) string {
	value, _, _ := unstructured.NestedFieldNoCopy(o.Object, strings.Split(path, ".")...)
	return fmt.Sprint(value)
}

// conditionOf is the status and reason of a condition; empty when there is none.
func conditionOf(o *unstructured.Unstructured, kind string) string {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range list {
		if c := c.(map[string]any); c["type"] == kind {
			return fmt.Sprintf("%v %v", c["status"], c["reason"])
		}
	}
	return ""
}

func (p *plane) want(name, path, value string) {
	p.Helper()
	p.eventually(fmt.Sprintf("%s of %s is %q", path, name, value), func() error {
		if got := field(p.get(name), path); got != value {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
}

func (p *plane) wantCondition(name, kind, value string) {
	p.Helper()
	p.eventually(fmt.Sprintf("condition %s of %s is %q", kind, name, value), func() error {
		if got := conditionOf(p.get(name), kind); got != value {
			return fmt.Errorf("it is %q in %v", got, p.get(name).Object["status"])
		}
		return nil
	})
}

// jobs are the names of the jobs of an actor.
func (p *plane) jobs(path string) string {
	node, _ := p.system.Look(path)
	return strings.Join(node.JobNames, " ")
}

func bound(t *testing.T, op operator.Operator[page], opts ...served.Option) *served.Operator {
	t.Helper()
	o, err := served.Bind(op, operator.OperatorConfig{}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

var errAway = errors.New("away")
