package kubelet

import (
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/nodeactor/nodeactor/kubelet/images"
)

func TestHealthByRelist(t *testing.T) {
	h := newHealth(180 * time.Second)
	at := time.Unix(1000, 0)
	if h.err(at) == nil {
		t.Error("healthy before the first relist")
	}
	h.good(at)
	if err := h.bad(errors.New("no")); !err {
		t.Error("a first failure is news")
	}
	if h.bad(errors.New("no")) {
		t.Error("the same failure is no news")
	}
	if err := h.err(at.Add(180 * time.Second)); err != nil {
		t.Errorf("one failed relist: %v", err)
	}
	err := h.err(at.Add(181 * time.Second))
	if err == nil || !strings.Contains(err.Error(), "3m1s ago; threshold is 3m0s") || strings.Contains(steady(err), "3m1s") {
		t.Errorf("%v / %s", err, steady(err))
	}
	h.good(at.Add(200 * time.Second))
	if err := h.err(at.Add(201 * time.Second)); err != nil {
		t.Errorf("it did not recover: %v", err)
	}
}

type noImages struct{ Images }

func (noImages) List() []images.Image {
	return []images.Image{{Ref: "a:1", ID: "sha256:a", Digest: "sha256:a", Size: 5}, {Ref: "b:1", ID: "sha256:b", Digest: "sha256:d", Size: 7}}
}

func testShared(t *testing.T, api *fake.Clientset) *shared {
	return newShared(Deps{Client: api, Images: noImages{}, Log: slog.New(slog.DiscardHandler), Config: Config{NodeName: "n", DataDir: t.TempDir(),
		NodeIPs: []netip.Addr{netip.MustParseAddr("192.0.2.1")}, ListenAddr: "0.0.0.0:10250", PodCIDR: "10.1.0.0/24", Labels: map[string]string{"mine": "x"}}})
}

// TestNodeKeepsWhatOthersOwn registers over a Node that others have written to.
func TestNodeKeepsWhatOthersOwn(t *testing.T) {
	api := fake.NewClientset(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"theirs": "y"}, Annotations: map[string]string{"a": "b"}},
		Spec: v1.NodeSpec{Unschedulable: true, Taints: []v1.Taint{{Key: "k", Effect: v1.TaintEffectNoSchedule}}},
		Status: v1.NodeStatus{Capacity: v1.ResourceList{"example.org/gpu": resource.MustParse("2")},
			Conditions: []v1.NodeCondition{{Type: "Theirs", Status: v1.ConditionTrue}, {Type: v1.NodeReady, Status: v1.ConditionTrue, LastTransitionTime: metav1.Unix(5, 0)}}}})
	s := testShared(t, api)
	n := &nodeStatusChild{shared: s, pressure: map[v1.NodeConditionType]time.Time{}}
	at := time.Unix(1000, 0)
	node, err := n.ensureNode(t.Context(), n.conditions(at), at)
	if err != nil {
		t.Fatal(err)
	}
	if node.Labels["theirs"] != "y" || node.Labels["mine"] != "x" || node.Labels[v1.LabelHostname] != "n" || node.Annotations["a"] != "b" || !node.Spec.Unschedulable ||
		len(node.Spec.Taints) != 1 || node.Spec.PodCIDR != "10.1.0.0/24" {
		t.Errorf("%+v", node)
	}
	if q := node.Status.Capacity["example.org/gpu"]; q.Value() != 2 || node.Status.Capacity.Pods().Value() != DefaultMaxPods {
		t.Errorf("%+v", node.Status.Capacity)
	}
	if p := node.Status.DaemonEndpoints.KubeletEndpoint.Port; p != 10250 {
		t.Errorf("port %d", p)
	}
	if i := node.Status.Images; len(i) != 2 || i[0].SizeBytes != 7 || i[0].Names[0] != "b:1" {
		t.Errorf("%+v", i)
	}
	theirs, ready := false, false
	for _, c := range node.Status.Conditions {
		theirs = theirs || c.Type == "Theirs"
		ready = ready || c.Type == v1.NodeReady && c.Status == v1.ConditionFalse && c.Reason == "KubeletNotReady"
	}
	if !theirs || !ready {
		t.Errorf("%+v", node.Status.Conditions)
	}
	api.ClearActions()
	later := at.Add(time.Hour)
	if _, err := n.ensureNode(t.Context(), n.conditions(later), later); err != nil {
		t.Fatal(err)
	}
	if len(api.Actions()) != 1 {
		t.Errorf("an unchanged node was written: %v", api.Actions())
	}
}

func TestPressureIsHeld(t *testing.T) {
	n := &nodeStatusChild{pressure: map[v1.NodeConditionType]time.Time{}}
	at := time.Unix(1000, 0)
	is := func(yes bool, at time.Time) v1.ConditionStatus {
		return n.pressed(v1.NodeMemoryPressure, yes, "bad", "good", "memory", at).Status
	}
	if is(false, at) != v1.ConditionFalse || is(true, at) != v1.ConditionTrue || is(false, at.Add(pressureHold-1)) != v1.ConditionTrue || is(false, at.Add(pressureHold)) != v1.ConditionFalse {
		t.Error("pressure is not held as it should be")
	}
}

func TestLeaseIsWrittenOncePerStart(t *testing.T) {
	api := fake.NewClientset()
	n := &nodeLeaseChild{shared: testShared(t, api)}
	for i := range 2 {
		at := metav1.NewMicroTime(time.Unix(int64(1000+i), 0))
		if err := n.ensureLease(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		l, err := api.CoordinationV1().Leases(v1.NamespaceNodeLease).Get(t.Context(), "n", metav1.GetOptions{})
		if err != nil || *l.Spec.HolderIdentity != "n" || *l.Spec.LeaseDurationSeconds != 40 || !l.Spec.RenewTime.Equal(&at) {
			t.Errorf("%+v, %v", l, err)
		}
	}
}

func TestAdmission(t *testing.T) {
	asks := func(name, cpu string, hostPort int32) *v1.Pod {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c",
			Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}}}}}}
		if hostPort > 0 {
			p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: hostPort}}
		}
		return p
	}
	over := asks("over", "4", 80)
	over.Status.Phase = v1.PodSucceeded
	others := []*v1.Pod{asks("a", "1500m", 80), over}
	have := v1.ResourceList{v1.ResourceCPU: resource.MustParse("2"), v1.ResourcePods: resource.MustParse("2")}
	for name, c := range map[string]struct {
		pod    *v1.Pod
		others []*v1.Pod
		reason string
	}{
		"fits":      {asks("b", "500m", 0), others, ""},
		"cpu":       {asks("b", "501m", 0), others, "OutOfcpu"},
		"pods":      {asks("b", "0", 0), append(others, asks("c", "0", 0)), "OutOfpods"},
		"host port": {asks("b", "0", 80), others, "NodePorts"},
		"itself":    {asks("a", "1500m", 80), others, ""},
	} {
		got := fits(c.pod, c.others, have)
		if (got == nil) != (c.reason == "") || got != nil && (got.Reason != c.reason || !strings.HasPrefix(got.Message, rejectPrefix)) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	s := testShared(t, fake.NewClientset())
	s.node.Store(&v1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"disk": "ssd"}}})
	p := asks("b", "0", 0)
	p.Spec.NodeSelector = map[string]string{"disk": "tape"}
	if r := s.admit(p); r == nil || r.Reason != "NodeAffinity" {
		t.Errorf("%+v", r)
	}
}
