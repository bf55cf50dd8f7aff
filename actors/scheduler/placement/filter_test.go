package placement

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const zone = v1.LabelTopologyZone

// TestFilters gives each filter a pod that only it refuses, and the pod's change that makes it fit.
func TestFilters(t *testing.T) {
	always := v1.ContainerRestartPolicyAlways
	sidecar := func(p *v1.Pod) {
		p.Spec.InitContainers = []v1.Container{{Name: "side", RestartPolicy: &always,
			Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("3")}}}}
	}
	overhead := func(p *v1.Pod) { p.Spec.Overhead = v1.ResourceList{v1.ResourceMemory: resource.MustParse("8Gi")} }
	byName := func(name string) func(*v1.Pod) {
		return func(p *v1.Pod) {
			affinityOf(p).NodeAffinity = &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
				NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{name}}}}},
			}}
		}
	}
	full := makePod("full", on("a"), requests(v1.ResourceCPU, "2"), podLabel("app", "web"), usesPort(80, "", ""))
	cases := []struct {
		name    string
		node    func(*v1.Node)
		placed  *v1.Pod
		pod     []func(*v1.Pod)
		message string
	}{
		{"fits", nil, nil, nil, ""},
		{"not ready", notReady, nil, nil, "1 node(s) were not ready"},
		{"not ready, tolerated", notReady, nil, []func(*v1.Pod){toleratesKey("")}, ""},
		{"cordon", cordoned, nil, nil, "1 node(s) were unschedulable"},
		{"cordon, tolerated", cordoned, nil, []func(*v1.Pod){toleratesKey(v1.TaintNodeUnschedulable)}, ""},
		{"node selector", nil, nil, []func(*v1.Pod){selects("disk", "ssd")}, "1 node(s) didn't match Pod's node affinity/selector"},
		{"node selector met", label("disk", "ssd"), nil, []func(*v1.Pod){selects("disk", "ssd")}, ""},
		{"affinity by name", nil, nil, []func(*v1.Pod){byName("b")}, "1 node(s) didn't match Pod's node affinity/selector"},
		{"affinity by name met", nil, nil, []func(*v1.Pod){byName("a")}, ""},
		{"taint", taint("gpu", v1.TaintEffectNoSchedule), nil, nil, "1 node(s) had untolerated taint(s)"},
		{"evicting taint", taint("gpu", v1.TaintEffectNoExecute), nil, nil, "1 node(s) had untolerated taint(s)"},
		{"taint tolerated", taint("gpu", v1.TaintEffectNoSchedule), nil, []func(*v1.Pod){toleratesKey("gpu")}, ""},
		{"advice only", taint("gpu", v1.TaintEffectPreferNoSchedule), nil, nil, ""},
		{"port taken", nil, full, []func(*v1.Pod){usesPort(80, "127.0.0.1", v1.ProtocolTCP)}, "1 node(s) didn't have free ports for the requested pod ports"},
		{"port of another protocol", nil, full, []func(*v1.Pod){usesPort(80, "", v1.ProtocolUDP)}, ""},
		{"too many pods", offers(v1.ResourcePods, "1"), full, nil, "1 Too many pods"},
		{"cpu", nil, full, []func(*v1.Pod){requests(v1.ResourceCPU, "2001m")}, "1 Insufficient cpu"},
		{"cpu just fits", nil, full, []func(*v1.Pod){requests(v1.ResourceCPU, "2")}, ""},
		{"sidecar counts", nil, full, []func(*v1.Pod){sidecar}, "1 Insufficient cpu"},
		{"memory", nil, nil, []func(*v1.Pod){requests(v1.ResourceMemory, "9Gi")}, "1 Insufficient memory"},
		{"overhead counts", nil, nil, []func(*v1.Pod){requests(v1.ResourceMemory, "1"), overhead}, "1 Insufficient memory"},
		{"ephemeral storage", nil, nil, []func(*v1.Pod){requests(v1.ResourceEphemeralStorage, "11Gi")}, "1 Insufficient ephemeral-storage"},
		{"extended", nil, nil, []func(*v1.Pod){requests("example.com/gpu", "1")}, "1 Insufficient example.com/gpu"},
		{"extended there", offers("example.com/gpu", "1"), nil, []func(*v1.Pod){requests("example.com/gpu", "1")}, ""},
		{"first reason only", notReady, nil, []func(*v1.Pod){selects("disk", "ssd"), requests(v1.ResourceCPU, "99")}, "1 node(s) were not ready"},
		{"affinity unmet", label(zone, "z"), nil, []func(*v1.Pod){near(zone, "web")}, "1 node(s) didn't match pod affinity rules"},
		{"affinity met", label(zone, "z"), full, []func(*v1.Pod){near(zone, "web")}, ""},
		{"affinity, first of its kind", label(zone, "z"), nil, []func(*v1.Pod){near(zone, "web"), podLabel("app", "web")}, ""},
		{"affinity without the label", nil, full, []func(*v1.Pod){near(zone, "web")}, "1 node(s) didn't match pod affinity rules"},
		{"anti-affinity", label(zone, "z"), full, []func(*v1.Pod){apart(zone, "web")}, "1 node(s) didn't match pod anti-affinity rules"},
		{"anti-affinity elsewhere", label(zone, "z"), full, []func(*v1.Pod){apart(zone, "db")}, ""},
		{"anti-affinity of the other", label(zone, "z"), makePod("shy", on("a"), apart(zone, "web")), []func(*v1.Pod){podLabel("app", "web")}, "1 node(s) didn't satisfy existing pods anti-affinity rules"},
		{"spread without the label", nil, nil, []func(*v1.Pod){spreads(zone, "web", 1, v1.DoNotSchedule)}, "1 node(s) didn't match pod topology spread constraints (missing required label)"},
		{"spread as advice", nil, nil, []func(*v1.Pod){spreads(zone, "web", 1, v1.ScheduleAnyway)}, ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var change []func(*v1.Node)
			if tc.node != nil {
				change = append(change, tc.node)
			}
			c := given([]*v1.Node{makeNode("a", change...)})
			if tc.placed != nil {
				c.Observe(tc.placed)
			}
			got := c.Place(c.Compile(makePod("new", tc.pod...)))
			got.Preemption = ""
			want := Decision{Node: "a", Nodes: 1}
			if tc.message != "" {
				want = Decision{Message: "0/1 nodes are available: " + tc.message + ".", Nodes: 1}
			}
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// TestMessage counts every node once and sorts the reasons as text.
func TestMessage(t *testing.T) {
	c := given([]*v1.Node{
		makeNode("a", taint("x", v1.TaintEffectNoSchedule)), makeNode("b", taint("x", v1.TaintEffectNoSchedule)), makeNode("c"),
	})
	got := c.Place(c.Compile(makePod("big", requests(v1.ResourceCPU, "5"), requests(v1.ResourceMemory, "50Gi")))).Message
	if want := "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint(s)."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestMessageOfPinnedPod counts the nodes that were not even looked at.
func TestMessageOfPinnedPod(t *testing.T) {
	c := given([]*v1.Node{makeNode("a"), makeNode("b", cordoned), makeNode("c")})
	p := makePod("daemon", func(p *v1.Pod) {
		affinityOf(p).NodeAffinity = &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
			NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{"b"}}}}},
		}}
	})
	got := c.Place(c.Compile(p)).Message
	if want := "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNoNodes(t *testing.T) {
	c := NewCluster(nil, nil)
	if d := c.Place(c.Compile(makePod("p"))); d.Node != "" || d.Nodes != 0 {
		t.Errorf("got %+v from an empty cluster", d)
	}
}

// TestHardSpread keeps zones within one pod of each other.
func TestHardSpread(t *testing.T) {
	c := given([]*v1.Node{makeNode("a", label(zone, "1")), makeNode("b", label(zone, "2")), makeNode("c", label(zone, "2"))})
	counts := map[string]int{}
	for _, name := range names("p", 9) {
		p := makePod(name, podLabel("app", "web"), spreads(zone, "web", 1, v1.DoNotSchedule))
		node := c.mustPlace(t, p)
		c.Assume(c.Compile(p), node)
		counts[c.nodes[node].object.Labels[zone]]++
		if d := counts["1"] - counts["2"]; d > 1 || d < -1 {
			t.Fatalf("zones hold %v", counts)
		}
	}
}

// TestNamespacesOfTerms honours namespace lists and namespace selectors.
func TestNamespacesOfTerms(t *testing.T) {
	spaces := func(name string) (map[string]string, bool) {
		return map[string]string{"team": "of-" + name}, name == "other"
	}
	c := NewCluster(nil, spaces)
	c.SetNode(makeNode("a", label(zone, "z")))
	c.Observe(makePod("there", on("a"), inNamespace("other"), podLabel("app", "web")))
	with := func(change func(*v1.PodAffinityTerm)) *v1.Pod {
		p := makePod("new", near(zone, "web"))
		change(&p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0])
		return p
	}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "of-other"}}
	for name, tc := range map[string]struct {
		change func(*v1.PodAffinityTerm)
		fits   bool
	}{
		"own namespace only": {func(*v1.PodAffinityTerm) {}, false},
		"by name":            {func(t *v1.PodAffinityTerm) { t.Namespaces = []string{"other"} }, true},
		"by label":           {func(t *v1.PodAffinityTerm) { t.NamespaceSelector = selector }, true},
		"all":                {func(t *v1.PodAffinityTerm) { t.NamespaceSelector = &metav1.LabelSelector{} }, true},
	} {
		if got := c.Place(c.Compile(with(tc.change))).Node != ""; got != tc.fits {
			t.Errorf("%s: fits = %v, want %v", name, got, tc.fits)
		}
	}
}
