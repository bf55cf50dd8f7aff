package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// world is a small API server in memory: it stores nodes and pods, tells its feeds, and serves the writes the scheduler makes.
type world struct {
	mu       sync.Mutex
	revision int
	nodes    map[string]*v1.Node
	pods     map[string]*v1.Pod
	feeds    []*worldFeed
	events   []*v1.Event
	// nodeFailures is how many writes of nodes fail first.
	nodeFailures int
	// refuse makes bindings fail; nil lets them pass.
	refuse func(pod string) error
	// changed is closed and replaced with every change.
	changed chan struct{}
	writes  atomic.Int64
}

func newWorld() *world {
	return &world{nodes: map[string]*v1.Node{}, pods: map[string]*v1.Pod{}, changed: make(chan struct{})}
}

// tell stamps nothing: callers hold the lock and have stored the object.
func (w *world) tell(c Change) {
	for _, f := range w.feeds {
		f.offer(c)
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *world) stamp() string {
	w.revision++
	return strconv.Itoa(w.revision)
}

func (w *world) putNode(n *v1.Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n = n.DeepCopy()
	n.ResourceVersion = w.stamp()
	w.nodes[n.Name] = n
	w.tell(Change{Node: n})
}

func (w *world) putPod(p *v1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.storePod(p)
}

func (w *world) storePod(p *v1.Pod) {
	p = p.DeepCopy()
	p.ResourceVersion = w.stamp()
	w.pods[p.Name] = p
	w.tell(Change{Pod: p})
}

func (w *world) deletePod(name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.pods[name]
	if p == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, name)
	}
	delete(w.pods, name)
	w.tell(Change{Pod: p, Deleted: true})
	return nil
}

func (w *world) pod(name string) *v1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pods[name]
}

// bound counts the pods that have a node.
func (w *world) bound() (count int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pods {
		if p.Spec.NodeName != "" {
			count++
		}
	}
	return count
}

// overcommitted names a node that holds more pods or CPU than it has; empty when there is none.
func (w *world) overcommitted() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	cpu, pods := map[string]int64{}, map[string]int64{}
	for _, p := range w.pods {
		q := p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU]
		cpu[p.Spec.NodeName] += q.MilliValue()
		pods[p.Spec.NodeName]++
	}
	for name, n := range w.nodes {
		if cpu[name] > n.Status.Allocatable.Cpu().MilliValue() || pods[name] > n.Status.Allocatable.Pods().Value() {
			return name
		}
	}
	return ""
}

// eventsFor lists the reasons of the Events about a pod.
func (w *world) eventsFor(pod string) (reasons []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		if e.InvolvedObject.Name == pod {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}

// Nodes implements Source.
func (w *world) Nodes() []*v1.Node {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.nodes))
}

// Pods implements Source.
func (w *world) Pods() []*v1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.pods))
}

// Namespace implements Source.
func (w *world) Namespace(string) (map[string]string, bool) { return nil, false }

// Guarded implements Source.
func (w *world) Guarded(*v1.Pod) bool { return false }

// Follow implements Source.
func (w *world) Follow() Feed {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := &worldFeed{ready: make(chan struct{}, 1)}
	w.feeds = append(w.feeds, f)
	return f
}

// lose makes every feed drop what it holds.
func (w *world) lose() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.feeds {
		f.lose()
	}
}

type worldFeed struct {
	mu      sync.Mutex
	changes []Change
	lost    bool
	ready   chan struct{}
}

func (f *worldFeed) offer(c Change) {
	f.mu.Lock()
	f.changes = append(f.changes, c)
	f.mu.Unlock()
	f.wake()
}

func (f *worldFeed) lose() {
	f.mu.Lock()
	f.changes, f.lost = nil, true
	f.mu.Unlock()
	f.wake()
}

func (f *worldFeed) wake() {
	select {
	case f.ready <- struct{}{}:
	default:
	}
}

// Close implements Feed.
func (f *worldFeed) Close() {}

// Next implements Feed.
func (f *worldFeed) Next(ctx context.Context) ([]Change, error) {
	for {
		f.mu.Lock()
		changes, lost := f.changes, f.lost
		f.changes, f.lost = nil, false
		f.mu.Unlock()
		switch {
		case lost:
			return nil, ErrLost
		case len(changes) > 0:
			return changes, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-f.ready:
		}
	}
}

// client serves the scheduler's writes from the world; everything else of the interface is missing and would panic.
type client struct {
	kubernetes.Interface
	world *world
}

// CoreV1 implements kubernetes.Interface.
func (c client) CoreV1() corev1.CoreV1Interface { return coreClient{world: c.world} }

type coreClient struct {
	corev1.CoreV1Interface
	world *world
}

func (c coreClient) Pods(string) corev1.PodInterface     { return podClient{world: c.world} }
func (c coreClient) Nodes() corev1.NodeInterface         { return nodeClient{world: c.world} }
func (c coreClient) Events(string) corev1.EventInterface { return eventClient{world: c.world} }

type podClient struct {
	corev1.PodInterface
	world *world
}

// Bind refuses a second binding, as the API server does.
func (c podClient) Bind(_ context.Context, b *v1.Binding, _ metav1.CreateOptions) error {
	w := c.world
	w.writes.Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.pods[b.Name]
	resource := schema.GroupResource{Resource: "pods"}
	switch {
	case p == nil:
		return apierrors.NewNotFound(resource, b.Name)
	case p.Spec.NodeName != "" || p.UID != b.UID:
		return apierrors.NewConflict(resource, b.Name, fmt.Errorf("already assigned to %q", p.Spec.NodeName))
	}
	if w.refuse != nil {
		if err := w.refuse(b.Name); err != nil {
			return err
		}
	}
	p = p.DeepCopy()
	p.Spec.NodeName = b.Target.Name
	w.storePod(p)
	return nil
}

// Patch understands the status patches the scheduler makes.
func (c podClient) Patch(_ context.Context, name string, _ types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string) (*v1.Pod, error) {
	w := c.world
	w.writes.Add(1)
	var patch struct{ Status v1.PodStatus }
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.pods[name]
	if p == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, name)
	}
	p = p.DeepCopy()
	p.Status.Conditions = patch.Status.Conditions
	p.Status.NominatedNodeName = patch.Status.NominatedNodeName
	w.storePod(p)
	return p, nil
}

func (c podClient) Delete(_ context.Context, name string, _ metav1.DeleteOptions) error {
	c.world.writes.Add(1)
	return c.world.deletePod(name)
}

type nodeClient struct {
	corev1.NodeInterface
	world *world
}

// Patch understands the patches of taints, which apply to one version only.
func (c nodeClient) Patch(_ context.Context, name string, _ types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string) (*v1.Node, error) {
	var patch v1.Node
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, err
	}
	w := c.world
	w.writes.Add(1)
	w.mu.Lock()
	n := w.nodes[name]
	w.nodeFailures--
	failing := w.nodeFailures >= 0
	w.mu.Unlock()
	if failing {
		return nil, apierrors.NewInternalError(fmt.Errorf("the store is away"))
	}
	if n == nil || n.ResourceVersion != patch.ResourceVersion {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, name, fmt.Errorf("version %q", patch.ResourceVersion))
	}
	n = n.DeepCopy()
	n.Spec.Taints = patch.Spec.Taints
	w.putNode(n)
	return n, nil
}

type eventClient struct {
	corev1.EventInterface
	world *world
}

func (c eventClient) Create(_ context.Context, e *v1.Event, _ metav1.CreateOptions) (*v1.Event, error) {
	c.world.writes.Add(1)
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	c.world.events = append(c.world.events, e)
	return e, nil
}

func testNode(name string, cpu string) *v1.Node {
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}},
		Status: v1.NodeStatus{
			Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse("64Gi"), v1.ResourcePods: resource.MustParse("250")},
			Conditions:  []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}},
		},
	}
}

func withCPU(p *v1.Pod, cpu string) *v1.Pod {
	p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}
	return p
}
