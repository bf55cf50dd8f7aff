package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/nodeactor/nodeactor/actors/apiserver"
	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/controllers/deployment"
	"github.com/nodeactor/nodeactor/actors/controllers/replicaset"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
	"github.com/nodeactor/nodeactor/actors/scheduler"
	"github.com/nodeactor/nodeactor/cluster/identity"
	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

const (
	planeNodes, planePods = "BENCH_PLANE_NODES", "BENCH_PLANE_PODS"
	writers               = 32
)

// plane is the part of the control plane that a binding goes through: the real store, API and scheduler, without any socket.
type plane struct {
	store  *store.Store
	cache  *cache.Cache
	client kubernetes.Interface
}

// BenchmarkSchedulingRate stores pods and nodes first, then starts the scheduler and times it until the last binding is stored.
// BENCH_PLANE_NODES and BENCH_PLANE_PODS make it larger; it says pods/s.
func BenchmarkSchedulingRate(b *testing.B) {
	nodes, pods := sizeOf(planeNodes, 500), sizeOf(planePods, 1000)
	p := newPlane(b)
	p.prepare(b, nodes)
	p.fill(b, pods, func(i int) error {
		_, err := p.client.CoreV1().Pods("load").Create(b.Context(), planePod(i), metav1.CreateOptions{})
		return err
	})
	runtime.GC()
	b.ResetTimer()
	before := cpuTime()
	p.schedule(b, pods)
	b.ReportMetric(float64(pods)/b.Elapsed().Seconds(), "pods/s")
	b.ReportMetric(1000*(cpuTime()-before).Seconds()/float64(pods), "cpu-ms/pod")
}

// prepare stores nodes and the namespace of the load.
func (p *plane) prepare(b *testing.B, nodes int) {
	b.Helper()
	p.fill(b, nodes, func(i int) error {
		_, err := p.client.CoreV1().Nodes().Create(b.Context(), planeNode(i), metav1.CreateOptions{})
		return err
	})
	if _, err := p.client.CoreV1().Namespaces().Create(b.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "load"}}, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	if _, err := p.client.CoreV1().ServiceAccounts("load").Create(b.Context(), &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
}

// cpuTime is what this process has used: steadier than the clock on a busy machine.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func sizeOf(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

func newPlane(b *testing.B) *plane {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	ctx := context.Background()
	st, err := store.Open(ctx, store.Config{Dir: b.TempDir(), NodeName: "bench", Log: log})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = st.Close(ctx) })
	id, err := identity.Load(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	api, err := apiserver.New(ctx, apiserver.Config{Store: st, Identity: id, Log: log, AdvertiseAddr: "127.0.0.1:6443"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(api.Close)
	if err := api.Bootstrap(ctx); err != nil {
		b.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(api.InProcess("system:admin", "system:masters"))
	if err != nil {
		b.Fatal(err)
	}
	return &plane{store: st, cache: cache.New(cache.FromStore(st), log), client: client}
}

// fill runs make for 0..n-1 from several writers at once.
func (p *plane) fill(b *testing.B, n int, create func(i int) error) {
	b.Helper()
	began := time.Now()
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := w; i < n; i += writers {
				if err := create(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.Logf("stored %d objects at %.0f per s", n, float64(n)/time.Since(began).Seconds())
}

func (p *plane) schedule(b *testing.B, pods int) {
	p.bind(b, pods, nil, nil)
}

// bind runs the scheduler and further actors, calls begin, and returns once so many pods are bound.
func (p *plane) bind(b *testing.B, pods int, further []supervision.Spec, begin func()) {
	system, err := supervision.New(supervision.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	feed := p.cache.Subscribe(cache.KindOf[*v1.Pod]())
	defer feed.Close()
	root := catalog.Row("node")
	root.Children = append([]supervision.Spec{cache.Spec(p.cache), scheduler.Spec(scheduler.Deps{
		Source: scheduler.FromCache(p.cache), Client: p.client, NodeReady: func(*v1.Node, time.Time) bool { return true },
	})}, further...)
	if err := system.Start(root); err != nil {
		b.Fatal(err)
	}
	if begin != nil {
		begin()
	}
	created, all := map[string]bool{}, time.Time{}
	began := time.Now()
	for bound := map[string]bool{}; len(bound) < pods; {
		changes, err := feed.Next(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		for _, c := range changes {
			pod, ok := cache.As[*v1.Pod](c.Latest())
			if !ok {
				continue
			}
			if created[pod.Name] = true; len(created) == pods && all.IsZero() {
				all = time.Now()
			}
			if pod.Spec.NodeName != "" {
				bound[pod.Name] = true
			}
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(pods)/all.Sub(began).Seconds(), "created/s")
	system.Stop(context.Background())
}

// BenchmarkDeploymentRate stores nodes and starts the scheduler and the controllers of Deployments and ReplicaSets, then posts one Deployment
// and times it until the last binding is stored. It is sized as BenchmarkSchedulingRate is.
func BenchmarkDeploymentRate(b *testing.B) {
	nodes, pods := sizeOf(planeNodes, 500), sizeOf(planePods, 1000)
	p := newPlane(b)
	p.prepare(b, nodes)
	clock, log := supervision.RealClock(), slog.New(slog.DiscardHandler)
	events := kube.NewRecorder(p.client.CoreV1(), clock, log)
	defer events.Start(b.Context()).Cancel()
	deps := kube.Deps{Cache: p.cache, Clock: clock, Log: log}
	further := []supervision.Spec{
		kube.Spec(deployment.New(p.client, clock, events.For(deployment.Component)), deps),
		kube.Spec(replicaset.New(p.client, clock, events.For(replicaset.Component)), deps),
	}
	replicas, template := int32(pods), planePod(0)
	posted := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "load"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: template.Labels}, Spec: template.Spec},
		},
	}
	runtime.GC()
	b.ResetTimer()
	before := cpuTime()
	p.bind(b, pods, further, func() {
		if _, err := p.client.AppsV1().Deployments("load").Create(b.Context(), posted, metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
	})
	b.ReportMetric(float64(pods)/b.Elapsed().Seconds(), "pods/s")
	b.ReportMetric(1000*(cpuTime()-before).Seconds()/float64(pods), "cpu-ms/pod")
}

func planeNode(i int) *v1.Node {
	name := fmt.Sprintf("node-%05d", i)
	room := v1.ResourceList{v1.ResourceCPU: resource.MustParse("64"), v1.ResourceMemory: resource.MustParse("256Gi"), v1.ResourcePods: resource.MustParse("250")}
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}},
		Status:     v1.NodeStatus{Capacity: room, Allocatable: room, Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}},
	}
}

func planePod(i int) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%05d", i), Labels: map[string]string{"app": "load"}},
		Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "example.com/none", Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("10m"), v1.ResourceMemory: resource.MustParse("10Mi")},
		}}}},
	}
}
