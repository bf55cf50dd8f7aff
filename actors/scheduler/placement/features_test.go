package placement

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestF037_FiltersAskInTheirOrder begins with a node that every filter refuses, and mends one cause after the other.
func TestF037_FiltersAskInTheirOrder(t *testing.T) {
	there := makePod("there", on("a"), requests(v1.ResourceCPU, "3"), podLabel("app", "web"), usesPort(80, "", ""))
	node := []func(*v1.Node){notReady, cordoned, taint("gpu", v1.TaintEffectNoSchedule), label(zone, "z")}
	pod := []func(*v1.Pod){
		podLabel("app", "web"), selects("disk", "ssd"), usesPort(80, "", ""), requests(v1.ResourceCPU, "2"), spreads("rack", "web", 1, v1.DoNotSchedule),
		near(zone, "db"),
		func(p *v1.Pod) { p.Spec.NodeName = "b" },
	}
	steps := []struct {
		refuses string
		mend    func()
	}{
		{"node(s) were not ready", func() { node[0] = func(*v1.Node) {} }},
		{"node(s) were unschedulable", func() { node[1] = func(*v1.Node) {} }},
		{"node(s) didn't match the requested node name", func() { pod = pod[:6] }},
		{"node(s) didn't match Pod's node affinity/selector", func() { node = append(node, label("disk", "ssd")) }},
		{"node(s) had untolerated taint(s)", func() { pod = append(pod, toleratesKey("gpu")) }},
		{"node(s) didn't have free ports for the requested pod ports", func() { pod[2] = func(*v1.Pod) {} }},
		{"Insufficient cpu", func() { pod[3] = requests(v1.ResourceCPU, "1") }},
		{"node(s) didn't match pod topology spread constraints (missing required label)", func() { node = append(node, label("rack", "1")) }},
		{"node(s) didn't match pod affinity rules", func() { pod[5] = near(zone, "web") }},
		{"", func() {}},
	}
	for _, step := range steps {
		c := given([]*v1.Node{makeNode("a", node...)})
		c.Observe(there)
		got := c.Place(c.Compile(makePod("new", pod...)))
		want := ""
		if step.refuses != "" {
			want = "0/1 nodes are available: 1 " + step.refuses + "."
		}
		if !strings.HasPrefix(got.Message, want) || (got.Node == "a") != (want == "") {
			t.Errorf("got %+v, want %q", got, want)
		}
		step.mend()
	}
}
