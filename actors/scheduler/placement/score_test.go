package placement

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestSpreadsReplicasEvenly(t *testing.T) {
	var nodes []*v1.Node
	for _, name := range names("n", 20) {
		nodes = append(nodes, makeNode(name, offers(v1.ResourcePods, "250"), offers(v1.ResourceCPU, "64")))
	}
	c := given(nodes)
	counts := map[string]int{}
	for _, name := range names("p", 500) {
		p := makePod(name, ownedBy("rs"), requests(v1.ResourceCPU, "10m"))
		node := c.mustPlace(t, p)
		c.Assume(c.Compile(p), node)
		counts[node]++
	}
	for node, count := range counts {
		if count < 24 || count > 26 {
			t.Errorf("%s holds %d of 500 replicas over 20 nodes", node, count)
		}
	}
}

func TestPreferences(t *testing.T) {
	prefers := func(p *v1.Pod) {
		affinityOf(p).NodeAffinity = &v1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{{
			Weight: 10, Preference: v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "disk", Operator: v1.NodeSelectorOpIn, Values: []string{"ssd"}}}},
		}}}
	}
	weighted := []v1.WeightedPodAffinityTerm{{Weight: 10, PodAffinityTerm: affinityTerm(v1.LabelHostname, "web")}}
	likes := func(p *v1.Pod) {
		affinityOf(p).PodAffinity = &v1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: weighted}
	}
	avoids := func(p *v1.Pod) {
		affinityOf(p).PodAntiAffinity = &v1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: weighted}
	}
	web := makePod("web", on("b"), podLabel("app", "web"))
	busy := makePod("busy", on("b"), requests(v1.ResourceCPU, "2"))
	cases := []struct {
		name   string
		b      func(*v1.Node)
		placed *v1.Pod
		pod    func(*v1.Pod)
		want   string
	}{
		{"least allocated", label("x", "y"), busy, nil, "a"},
		{"preferred node affinity", label("disk", "ssd"), nil, prefers, "b"},
		{"taint that advises against", taint("x", v1.TaintEffectPreferNoSchedule), nil, nil, "a"},
		{"preferred pod affinity", label("x", "y"), web, likes, "b"},
		{"preferred pod anti-affinity", label("x", "y"), web, avoids, "a"},
		{"spread as advice", label("x", "y"), web, spreads(v1.LabelHostname, "web", 1, v1.ScheduleAnyway), "a"},
		{"siblings", label("x", "y"), makePod("s", on("b"), ownedBy("rs")), ownedBy("rs"), "a"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c := given([]*v1.Node{makeNode("a"), makeNode("b", tc.b)})
			if tc.placed != nil {
				c.Observe(tc.placed)
			}
			p := makePod("new")
			if tc.pod != nil {
				tc.pod(p)
			}
			if got := c.mustPlace(t, p); got != tc.want {
				t.Errorf("placed on %s, want %s", got, tc.want)
			}
		})
	}
}

// TestDeterministic: the same input gives the same answers, and equal nodes are not always taken in the same order.
func TestDeterministic(t *testing.T) {
	run := func() (chosen []string) {
		var nodes []*v1.Node
		for _, name := range names("n", 10) {
			nodes = append(nodes, makeNode(name))
		}
		c := given(nodes)
		for _, name := range names("p", 20) {
			p := makePod(name)
			node := c.mustPlace(t, p)
			c.Assume(c.Compile(p), node)
			chosen = append(chosen, node)
		}
		return chosen
	}
	first, second := run(), run()
	inOrder := true
	for i := range first {
		if first[i] != second[i] {
			t.Fatalf("pod %d went to %s, then to %s", i, first[i], second[i])
		}
		inOrder = inOrder && (i == 0 || first[i] >= first[i-1])
	}
	if inOrder {
		t.Error("equal nodes are taken in the order of their names")
	}
}

// TestZonesTakeTurns: a sample of a large cluster holds all zones.
func TestZonesTakeTurns(t *testing.T) {
	c := given([]*v1.Node{
		makeNode("a1", label(zone, "a")), makeNode("a2", label(zone, "a")), makeNode("a3", label(zone, "a")), makeNode("b1", label(zone, "b")),
	})
	var got []string
	for _, n := range c.visiting() {
		got = append(got, n.name)
	}
	if got[0] != "a1" || got[1] != "b1" || got[2] != "a2" || got[3] != "a3" {
		t.Errorf("visited in the order %v", got)
	}
}

func TestSampleSize(t *testing.T) {
	for nodes, want := range map[int][2]int{0: {0, 0}, 1: {1, 1}, 99: {99, 99}, 100: {100, 100}, 1000: {420, 100}, 5000: {500, 100}, 10000: {500, 200}} {
		if picky, plain := sampleSize(nodes, true), sampleSize(nodes, false); picky != want[0] || plain != want[1] {
			t.Errorf("of %d nodes %d are compared for a pod with preferences and %d for one without, want %v", nodes, picky, plain, want)
		}
	}
}
