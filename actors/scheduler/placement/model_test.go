package placement

import (
	"fmt"
	"strconv"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// model is the naive ledger the real one is compared with: it knows the objects and counts from scratch every time.
type model struct {
	nodes map[string]*v1.Node
	pods  map[types.UID]*v1.Pod // with the node they are on
}

func (m *model) used(node string) (cpu, pods int64) {
	for _, p := range m.pods {
		if p.Spec.NodeName == node {
			q := p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU]
			cpu += q.MilliValue()
			pods++
		}
	}
	return cpu, pods
}

// allows says by first principles whether the pod may go to the node.
func (m *model) allows(p *v1.Pod, n *v1.Node) bool {
	cpu, pods := m.used(n.Name)
	want := p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU]
	switch {
	case n.Status.Conditions[0].Status != v1.ConditionTrue, n.Spec.Unschedulable:
		return false
	case len(p.Spec.NodeSelector) > 0 && n.Labels["pool"] != p.Spec.NodeSelector["pool"]:
		return false
	case len(n.Spec.Taints) > 0 && len(p.Spec.Tolerations) == 0:
		return false
	case want.MilliValue() > 0 && cpu+want.MilliValue() > n.Status.Allocatable.Cpu().MilliValue():
		return false
	case pods+1 > n.Status.Allocatable.Pods().Value():
		return false
	}
	return !m.portTaken(p, n.Name) && !m.repelled(p, n)
}

func (m *model) portTaken(p *v1.Pod, node string) bool {
	for _, other := range m.pods {
		if other.Spec.NodeName == node && len(p.Spec.Containers[0].Ports) > 0 && len(other.Spec.Containers[0].Ports) > 0 {
			return true
		}
	}
	return false
}

// repelled: pods labelled lone keep every other lone pod off their node.
func (m *model) repelled(p *v1.Pod, n *v1.Node) bool {
	for _, other := range m.pods {
		if other.Spec.NodeName == n.Name && p.Labels["app"] == "lone" && other.Labels["app"] == "lone" {
			return true
		}
	}
	return false
}

func drawNode(t *rapid.T) *v1.Node {
	n := makeNode("n"+strconv.Itoa(rapid.IntRange(0, 5).Draw(t, "node")),
		offers(v1.ResourceCPU, fmt.Sprintf("%dm", rapid.IntRange(0, 4000).Draw(t, "cpu"))),
		offers(v1.ResourcePods, strconv.Itoa(rapid.IntRange(0, 5).Draw(t, "pods"))),
		label("pool", rapid.SampledFrom([]string{"x", "y"}).Draw(t, "pool")))
	switch rapid.IntRange(0, 6).Draw(t, "trouble") {
	case 0:
		cordoned(n)
	case 1:
		notReady(n)
	case 2:
		taint("t", v1.TaintEffectNoSchedule)(n)
	}
	return n
}

func drawPod(t *rapid.T, serial int) *v1.Pod {
	p := makePod("p"+strconv.Itoa(serial), requests(v1.ResourceCPU, fmt.Sprintf("%dm", rapid.IntRange(0, 2000).Draw(t, "request"))))
	switch rapid.IntRange(0, 6).Draw(t, "wish") {
	case 0:
		selects("pool", rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "wanted pool"))(p)
	case 1:
		toleratesKey("t")(p)
	case 2:
		usesPort(80, "", "")(p)
	case 3:
		podLabel("app", "lone")(p)
		apart(v1.LabelHostname, "lone")(p)
	}
	return p
}

// TestNeverOvercommits runs random histories: every placement is allowed by the naive model, and a pod that is refused would have been
// refused by it on every node.
func TestNeverOvercommits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { history(t, rapid.IntRange(1, 60).Draw(t, "steps")) })
}

// FuzzNeverOvercommits is the same under the fuzzer.
func FuzzNeverOvercommits(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { history(t, 60) }))
}

func history(t *rapid.T, steps int) {
	c, m := NewCluster(nil, nil), &model{map[string]*v1.Node{}, map[types.UID]*v1.Pod{}}
	for serial := range steps {
		switch rapid.IntRange(0, 9).Draw(t, "step") {
		case 0, 1:
			n := drawNode(t)
			m.nodes[n.Name] = n
			c.SetNode(n)
		case 2:
			name := "n" + strconv.Itoa(rapid.IntRange(0, 5).Draw(t, "gone"))
			delete(m.nodes, name)
			c.DeleteNode(name)
		case 3:
			endOne(t, c, m)
		default:
			placeOne(t, c, m, drawPod(t, serial))
		}
		compare(t, c, m)
	}
}

// endOne takes one pod away, in one of the ways pods end.
func endOne(t *rapid.T, c *Cluster, m *model) {
	for _, serial := range rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}).Draw(t, "victim") {
		p := m.pods[types.UID("uid-p"+strconv.Itoa(serial))]
		if p == nil {
			continue
		}
		delete(m.pods, p.UID)
		if rapid.Bool().Draw(t, "deleted") {
			c.DeletePod(p.UID)
			return
		}
		ended := p.DeepCopy()
		ended.Status.Phase = v1.PodFailed
		c.Observe(ended)
		return
	}
}

func placeOne(t *rapid.T, c *Cluster, m *model, p *v1.Pod) {
	d := c.Compile(p)
	decision := c.Place(d)
	if decision.Node == "" {
		for _, n := range m.nodes {
			if m.allows(p, n) {
				t.Fatalf("%s could run on %s but was refused: %s", p.Name, n.Name, decision.Message)
			}
		}
		return
	}
	if n := m.nodes[decision.Node]; n == nil || !m.allows(p, n) {
		t.Fatalf("%s was placed on %s, which does not allow it", p.Name, decision.Node)
	}
	c.Assume(d, decision.Node)
	if rapid.IntRange(0, 4).Draw(t, "fails") == 0 {
		c.Forget(p.UID)
		return
	}
	bound := p.DeepCopy()
	bound.Spec.NodeName, bound.ResourceVersion = decision.Node, "2"
	m.pods[p.UID] = bound
	if rapid.Bool().Draw(t, "observed") {
		c.Observe(bound)
	}
}

func compare(t *rapid.T, c *Cluster, m *model) {
	if c.Nodes() != len(m.nodes) || len(c.occupants) != len(m.pods) {
		t.Fatalf("the ledger has %d nodes and %d pods, the model %d and %d", c.Nodes(), len(c.occupants), len(m.nodes), len(m.pods))
	}
	unready := 0
	for _, n := range m.nodes {
		if n.Status.Conditions[0].Status != v1.ConditionTrue {
			unready++
		}
	}
	if c.Unready() != unready {
		t.Fatalf("the ledger counts %d nodes that are not ready, the model %d", c.Unready(), unready)
	}
	for name, n := range c.nodes {
		cpu, pods := m.used(name)
		if n.used.MilliCPU != cpu || n.used.Pods != pods {
			t.Fatalf("%s: the ledger counts %d pods with %dm, the model %d with %dm", name, n.used.Pods, n.used.MilliCPU, pods, cpu)
		}
	}
}
