package replicagroup

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodeactor/nodeactor/actors/operator/kube"
	"github.com/nodeactor/nodeactor/actors/strategy"
)

var key = kube.Key{Namespace: "ns", Name: "web"}

// fake is a cluster in memory under a clock of its own.
type fake struct {
	*testing.T
	mu        sync.Mutex
	now       time.Time
	group     *Group
	pods      map[string]*corev1.Pod
	revisions map[string]*appsv1.ControllerRevision
	sizes     map[string]Size
	version   int
	made      int
	// quota bounds the pods; negative for none.
	quota int
	// refuses is what the API says to new pods.
	refuses error
	// before is called before each write, under the lock, and may panic as a kill does.
	before func(call string)
	// reads is called at each look at the pods.
	reads  func()
	writes []string
	events []string

	observes, withoutBursts bool
}

func newFake(t *testing.T, spec Spec) *fake {
	f := &fake{
		T: t, now: time.Unix(1_700_000_000, 0).UTC(), pods: map[string]*corev1.Pod{}, revisions: map[string]*appsv1.ControllerRevision{}, quota: -1,
		sizes: map[string]Size{"S": sizeOf(1), "M": sizeOf(2), "L": sizeOf(4)},
		group: &Group{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "g1", Generation: 1, ResourceVersion: "1"}, Spec: spec},
	}
	f.version = 1
	return f
}

func sizeOf(n int64) Size {
	return Size{CPU: *resource.NewQuantity(n, resource.DecimalSI), Memory: *resource.NewQuantity(n<<30, resource.BinarySI)}
}

const probed = `{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"web:v1","readinessProbe":{"httpGet":{"path":"/","port":80}}}]}}`

func specOf(replicas int, size string) Spec {
	return Spec{Replicas: replicas, Size: size, PodTemplate: json.RawMessage(probed)}
}

// Now and Sleep implement kube.Clock.
func (f *fake) Now() time.Time { return f.now }

func (f *fake) Sleep(context.Context, time.Duration) error { return nil }

// The recorder.

func (f *fake) Event(_ runtime.Object, kind, reason, message string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, fmt.Sprintf("%s %s: %s", kind, reason, message))
}

func (f *fake) Eventf(o runtime.Object, kind, reason, format string, args ...any) {
	f.Event(o, kind, reason, fmt.Sprintf(format, args...))
}

func (f *fake) AnnotatedEventf(o runtime.Object, _ map[string]string, kind, reason, format string, args ...any) {
	f.Eventf(o, kind, reason, format, args...)
}

// told tells whether an Event has all the words.
func (f *fake) told(words ...string) bool {
	return slices.ContainsFunc(f.events, func(event string) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(event, word) })
	})
}

// The world.

func (f *fake) Group(kube.Key) (*Group, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.group == nil {
		return nil, false, nil
	}
	return copied(f.group), true, nil
}

func copied[T any](v *T) *T {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var c T
	if err := json.Unmarshal(text, &c); err != nil {
		panic(err)
	}
	return &c
}

func (f *fake) Fresh(context.Context, kube.Key) (*Group, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.group == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, "web")
	}
	return copied(f.group), nil
}

func (f *fake) Size(name string) (Size, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.sizes[name]
	return s, ok, nil
}

func (f *fake) Pods(context.Context, types.UID) ([]*corev1.Pod, error) {
	if f.reads != nil {
		f.reads()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var pods []*corev1.Pod
	for _, name := range slices.Sorted(maps.Keys(f.pods)) {
		if pod := f.pods[name]; metav1.IsControlledBy(pod, f.group) {
			pods = append(pods, pod.DeepCopy())
		}
	}
	return pods, nil
}

func (f *fake) Pod(_, name string) (*corev1.Pod, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	pod, ok := f.pods[name]
	return pod, ok
}

func (f *fake) Revision(_, name string) (*appsv1.ControllerRevision, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, ok := f.revisions[name]
	return r, ok
}

func (f *fake) Revisions(context.Context, types.UID) ([]*appsv1.ControllerRevision, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.revisions)), nil
}

// write notes a write. The caller holds the lock, so that one thing happens at a time.
func (f *fake) write(call string) {
	if f.before != nil {
		f.before(call)
	}
	f.writes = append(f.writes, call)
}

func (f *fake) PutStatus(_ context.Context, g *Group) (*Group, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.write("status")
	switch {
	case f.group == nil:
		return nil, apierrors.NewNotFound(schema.GroupResource{}, g.Name)
	case f.group.ResourceVersion != g.ResourceVersion || f.group.UID != g.UID:
		return nil, apierrors.NewConflict(schema.GroupResource{}, g.Name, nil)
	}
	f.group.Status = copied(g).Status
	f.touched()
	return copied(f.group), nil
}

func (f *fake) touched() {
	f.version++
	f.group.ResourceVersion = strconv.Itoa(f.version)
}

func (f *fake) CreatePod(_ context.Context, pod *corev1.Pod) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.write("create " + pod.Name)
	switch {
	case f.refuses != nil:
		return f.refuses
	case f.pods[pod.Name] != nil:
		return apierrors.NewAlreadyExists(schema.GroupResource{}, pod.Name)
	case f.quota >= 0 && len(f.pods) >= f.quota:
		return apierrors.NewForbidden(schema.GroupResource{}, pod.Name, fmt.Errorf("exceeded quota: pods, used: %d", len(f.pods)))
	}
	pod = pod.DeepCopy()
	f.made++
	pod.UID = types.UID(fmt.Sprint("p", f.made))
	f.pods[pod.Name] = pod
	return nil
}

func (f *fake) DeletePod(_ context.Context, _, name string, uid types.UID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.write("delete " + name)
	if pod := f.pods[name]; pod != nil && pod.UID == uid && pod.DeletionTimestamp == nil {
		at := metav1.NewTime(f.now)
		pod.DeletionTimestamp = &at
	}
	return nil
}

func (f *fake) CreateRevision(_ context.Context, r *appsv1.ControllerRevision) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.write("keep " + r.Name)
	if f.revisions[r.Name] != nil {
		return apierrors.NewAlreadyExists(schema.GroupResource{}, r.Name)
	}
	f.revisions[r.Name] = r.DeepCopy()
	return nil
}

func (f *fake) DeleteRevision(_ context.Context, r *appsv1.ControllerRevision) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.write("forget " + r.Name)
	delete(f.revisions, r.Name)
	return nil
}

// What users, kubelets and the scheduler do.

func (f *fake) change(change func(*Spec)) {
	change(&f.group.Spec)
	f.group.Generation++
	f.touched()
}

// kubelet makes pods of the sizes ready, and lets go of those that are to go.
func (f *fake) kubelet(sizes ...string) {
	for name, pod := range f.pods {
		switch {
		case pod.DeletionTimestamp != nil:
			delete(f.pods, name)
		case slices.Contains(sizes, pod.Labels[SizeLabel]):
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
	}
}

// unschedulable tells of the pods of a size that no node takes them.
func (f *fake) unschedulable(size string) {
	for _, pod := range f.pods {
		if pod.Labels[SizeLabel] == size {
			pod.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available",
				LastTransitionTime: metav1.NewTime(f.now),
			}}
		}
	}
}

// reconciler is one that has just been started.
func (f *fake) reconciler() *reconciler {
	return &reconciler{world: f, clock: f, events: f, log: slog.New(slog.DiscardHandler), options: Options{
		Observe: func() bool { return f.observes }, WithoutBursts: func() bool { return f.withoutBursts },
	}}
}

// pass runs one pass, of a process of its own.
func (f *fake) pass() (time.Duration, error) {
	action, err := f.reconciler().Reconcile(f.Context(), key)
	return action.After, err
}

// rest runs passes until one writes nothing, and gives when time alone has the next.
func (f *fake) rest() time.Duration {
	f.Helper()
	for range 20 {
		before := len(f.writes)
		next, err := f.pass()
		if err != nil && !apierrors.IsConflict(err) {
			f.Fatal(err)
		}
		if err == nil && len(f.writes) == before {
			return next
		}
	}
	f.Fatalf("does not come to rest: %v", f.writes[max(0, len(f.writes)-20):])
	return 0
}

// settle lets the kubelets make pods of the sizes ready, and all come to rest.
func (f *fake) settle(sizes ...string) time.Duration {
	f.Helper()
	f.rest()
	for range 5 {
		f.kubelet(sizes...)
		f.rest()
	}
	return f.rest()
}

// has compares the living pods, as NAME:SIZE and a star for ready, with what is wanted.
func (f *fake) has(want string) {
	f.Helper()
	var have []string
	for _, name := range slices.Sorted(maps.Keys(f.pods)) {
		pod := f.pods[name]
		if going(pod) {
			continue
		}
		text := strings.TrimPrefix(name, "web-") + ":" + pod.Labels[SizeLabel]
		if ready(pod) {
			text += "*"
		}
		have = append(have, text)
	}
	if got := strings.Join(have, " "); got != want {
		f.Errorf("there are %q, want %q", got, want)
	}
}

// record compares the record's status and what is realized.
func (f *fake) record(status, realized string) {
	f.Helper()
	have := ""
	if r := f.group.Status.Reconfiguration; r != nil {
		have = r.Status
	}
	shape, _, _ := strings.Cut(f.group.Status.Realized.Shape, "@")
	if have != status || shape != realized {
		f.Errorf("record %q, realized %q; want %q and %q", have, shape, status, realized)
	}
}

func (f *fake) condition(kind string) (c metav1.Condition) {
	for _, c := range f.group.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return c
}

func (f *fake) durable() strategy.Durable {
	d, _ := f.group.durable()
	return d
}
