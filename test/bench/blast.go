package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	// blastSlice is how long the controller panics, or does not, before the halves change.
	blastSlice = 4 * time.Second
	// blastPace is the time between two requests of each verb.
	blastPace = 20 * time.Millisecond
	// panicPace is the time between two panics: one hundred a second.
	panicPace = 10 * time.Millisecond
	// patients is over how many ReplicaSets the panics are spread, each the manifest of an actor of its own.
	patients = 10
	// blastListed is how many objects a list has.
	blastListed = 100
	blastNS     = "blast"
	// blastSuffix names the directory of the node that panics, beside that of the node that is measured.
	blastSuffix = "-blast"
)

// blastPolicies keep a controller running that panics all the time: as the catalog has it, its actors would soon wait a minute each.
const blastPolicies = `faultPolicies:
- path: node/controllers/replicaset/manifests/*
  on:
    panic:       {do: restart, backoff: {initial: 10ms, factor: 1, cap: 10ms, jitter: 0, reset: 1s}}
    hang:        {do: restart}
    errorReturn: {do: restart}
    bindFailure: {do: restart}
- path: node/controllers/replicaset/manifests
  restarts: {burst: {max: 900, within: 5s}, sustained: {max: 1000, within: 6s}}
`

// halves are the latencies of one verb in milliseconds, without and with the panics.
type halves struct {
	mu  sync.Mutex
	all [2][]float64
}

func (h *halves) add(panicking bool, took time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := 0
	if panicking {
		i = 1
	}
	h.all[i] = append(h.all[i], took.Seconds()*1000)
}

// line compares the halves.
func (h *halves) line() line {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := line{"n": len(h.all[0]) + len(h.all[1])}
	for i, half := range []string{"calm_", ""} {
		l[half+"p50_ms"], l[half+"p99_ms"] = percentile(h.all[i], 50), percentile(h.all[i], 99)
	}
	for _, p := range []int{50, 99} {
		if calm := percentile(h.all[0], p); calm > 0 {
			l[fmt.Sprintf("p%d_ratio", p)] = percentile(h.all[1], p) / calm
		}
	}
	return l
}

// blast is a load on the API while a controller panics and while it does not, in turns.
type blast struct {
	client    kubernetes.Interface
	panicking atomic.Bool
	asked     int // for panics
	failed    atomic.Int64
	verbs     map[string]*halves
}

// blastRadius starts a node whose ReplicaSet controller panics a hundred times a second during every other slice of the time, and measures
// what that costs clients that have nothing to do with it.
func (n *own) blastRadius(ctx context.Context, r *results) (err error) {
	config := n.dir + blastSuffix + ".yaml"
	if err := os.WriteFile(config, []byte(blastPolicies), 0o600); err != nil {
		return err
	}
	defer os.Remove(config)
	other := &own{options: n.options, dir: n.dir + blastSuffix, further: []string{"--config", config, "--fault-injection", "--pod-cidr", "10.198.0.0/24"}}
	defer func() {
		if stopErr := other.stop(); err == nil {
			err = stopErr
		}
	}()
	if _, err := other.start(ctx); err != nil {
		return err
	}
	b := &blast{client: clientFor(other.kubeconfig()), verbs: map[string]*halves{"get": {}, "create": {}, "list": {}}}
	if err := b.prepare(ctx); err != nil {
		return fmt.Errorf("cannot prepare the load beside a panicking controller: %w", err)
	}
	if err := settle(ctx); err != nil {
		return err
	}
	return b.run(ctx, n.blast, func(measure string, l line) { r.add(n.label(), measure, l) })
}

// prepare stores what is read, and the manifests that panic.
func (b *blast) prepare(ctx context.Context) error {
	if _, err := b.client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: blastNS}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	for i := range blastListed {
		if err := b.create(ctx, fmt.Sprintf("stored-%03d", i), map[string]string{"listed": "true"}); err != nil {
			return err
		}
	}
	none := int32(0)
	for i := range patients {
		labels := map[string]string{"patient": strconv.Itoa(i)}
		set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: patient(i)}, Spec: appsv1.ReplicaSetSpec{
			Replicas: &none, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: benchPod("").Spec},
		}}
		if _, err := b.client.AppsV1().ReplicaSets(blastNS).Create(ctx, set, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func patient(i int) string { return fmt.Sprintf("patient-%d", i) }

func (b *blast) create(ctx context.Context, name string, labels map[string]string) error {
	object := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Data: map[string]string{"payload": strings.Repeat("x", 1024)}}
	_, err := b.client.CoreV1().ConfigMaps(blastNS).Create(ctx, object, metav1.CreateOptions{})
	return err
}

// run loads the API for the time, the halves in the order calm, panicking, panicking, calm, so that a machine that slowly becomes busier
// favours neither, and reports.
func (b *blast) run(ctx context.Context, whole time.Duration, report func(string, line)) error {
	loading, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	maps := b.client.CoreV1().ConfigMaps(blastNS)
	b.load(loading, &running, "get", func(i int) error {
		_, err := maps.Get(loading, fmt.Sprintf("stored-%03d", i%blastListed), metav1.GetOptions{})
		return err
	})
	b.load(loading, &running, "create", func(i int) error { return b.create(loading, fmt.Sprintf("made-%06d", i), nil) })
	b.load(loading, &running, "list", func(int) error {
		_, err := maps.List(loading, metav1.ListOptions{LabelSelector: "listed=true"})
		return err
	})
	running.Go(func() { every(loading, panicPace, b.panic) })
	before, panicked, err := containedPanics(ctx, b.client.Discovery().RESTClient()), 0.0, error(nil)
	for i := 0; err == nil && time.Duration(i)*blastSlice < whole; i++ {
		b.panicking.Store(i%4 == 1 || i%4 == 2)
		if b.panicking.Load() {
			panicked += blastSlice.Seconds()
		}
		select {
		case <-time.After(blastSlice):
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	stop()
	running.Wait()
	if err != nil {
		return err
	}
	rate := (containedPanics(ctx, b.client.Discovery().RESTClient()) - before) / max(panicked, 1)
	for verb, h := range b.verbs {
		l := h.line()
		l["errors"], l["panics_per_s"] = int(b.failed.Load()), rate
		report("blast_"+verb, l)
	}
	return nil
}

// load asks one verb at its pace and keeps how long each answer takes.
func (b *blast) load(ctx context.Context, running *sync.WaitGroup, verb string, ask func(i int) error) {
	h := b.verbs[verb]
	running.Go(func() {
		i := 0
		every(ctx, blastPace, func() {
			panicking, began := b.panicking.Load(), time.Now()
			err := ask(i)
			i++
			switch {
			case ctx.Err() != nil:
			case err != nil:
				b.failed.Add(1)
			default:
				h.add(panicking, time.Since(began))
			}
		})
	})
}

// panic injects the next panic, into one manifest after the other. One whose actor is just being restarted is passed over. While nothing is to
// panic it asks for a fault that does not exist, so that asking weighs on both halves.
func (b *blast) panic() {
	kind := "nothing"
	if b.panicking.Load() {
		kind = "panic"
	}
	b.asked++
	path := "node/controllers/replicaset/manifests/" + blastNS + ":" + patient(b.asked%patients)
	_ = b.client.Discovery().RESTClient().Post().AbsPath("/debug/faults").Param("path", path).Param("kind", kind).Do(context.Background()).Error()
}

// every calls f at a pace until ctx ends; calls that are late are left out.
func every(ctx context.Context, pace time.Duration, f func()) {
	ticks := time.NewTicker(pace)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			f()
		}
	}
}

// containedPanics reads from the node's metrics how many panics it has borne.
func containedPanics(ctx context.Context, client rest.Interface) float64 {
	text, err := client.Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0
	}
	for _, metric := range strings.Split(string(text), "\n") {
		if value, ok := strings.CutPrefix(metric, "nodeactor_panics_total "); ok {
			n, _ := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return n
		}
	}
	return 0
}
