package placement

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// makeNode is a ready node with 4 cores, 8 GiB and room for 10 pods.
func makeNode(name string, change ...func(*v1.Node)) *v1.Node {
	n := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}},
		Status: v1.NodeStatus{
			Allocatable: v1.ResourceList{
				v1.ResourceCPU: resource.MustParse("4"), v1.ResourceMemory: resource.MustParse("8Gi"),
				v1.ResourceEphemeralStorage: resource.MustParse("10Gi"), v1.ResourcePods: resource.MustParse("10"),
			},
			Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}},
		},
	}
	for _, f := range change {
		f(n)
	}
	return n
}

func label(key, value string) func(*v1.Node) {
	return func(n *v1.Node) { n.Labels[key] = value }
}

func taint(key string, effect v1.TaintEffect) func(*v1.Node) {
	return func(n *v1.Node) { n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: key, Effect: effect}) }
}

func cordoned(n *v1.Node) { n.Spec.Unschedulable = true }
func notReady(n *v1.Node) { n.Status.Conditions[0].Status = v1.ConditionUnknown }

func offers(name v1.ResourceName, quantity string) func(*v1.Node) {
	return func(n *v1.Node) { n.Status.Allocatable[name] = resource.MustParse(quantity) }
}

// makePod is a pod with one container that requests nothing.
func makePod(name string, change ...func(*v1.Pod)) *v1.Pod {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", Labels: map[string]string{}},
		Spec:       v1.PodSpec{SchedulerName: "default-scheduler", Containers: []v1.Container{{Name: "c"}}},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

func requests(name v1.ResourceName, quantity string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		if p.Spec.Containers[0].Resources.Requests == nil {
			p.Spec.Containers[0].Resources.Requests = v1.ResourceList{}
		}
		p.Spec.Containers[0].Resources.Requests[name] = resource.MustParse(quantity)
	}
}

func on(node string) func(*v1.Pod)             { return func(p *v1.Pod) { p.Spec.NodeName = node } }
func podLabel(key, value string) func(*v1.Pod) { return func(p *v1.Pod) { p.Labels[key] = value } }
func selects(key, value string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{key: value} }
}
func inNamespace(namespace string) func(*v1.Pod) { return func(p *v1.Pod) { p.Namespace = namespace } }

func toleratesKey(key string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, v1.Toleration{Key: key, Operator: v1.TolerationOpExists})
	}
}

func ownedBy(uid string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: uid, UID: types.UID(uid), Controller: &yes}}
	}
}

func usesPort(port int32, address string, protocol v1.Protocol) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports, v1.ContainerPort{ContainerPort: port, HostPort: port, HostIP: address, Protocol: protocol})
	}
}

func affinityTerm(key, app string) v1.PodAffinityTerm {
	return v1.PodAffinityTerm{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}
}

func affinityOf(p *v1.Pod) *v1.Affinity {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &v1.Affinity{}
	}
	return p.Spec.Affinity
}

func near(key, app string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		affinityOf(p).PodAffinity = &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{affinityTerm(key, app)}}
	}
}

func apart(key, app string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		affinityOf(p).PodAntiAffinity = &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{affinityTerm(key, app)}}
	}
}

func spreads(key, app string, skew int32, when v1.UnsatisfiableConstraintAction) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, v1.TopologySpreadConstraint{
			MaxSkew: skew, TopologyKey: key, WhenUnsatisfiable: when,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		})
	}
}

// given builds a ledger of nodes and pods.
func given(nodes []*v1.Node, pods ...*v1.Pod) *Cluster {
	c := NewCluster(nil, nil)
	for _, n := range nodes {
		c.SetNode(n)
	}
	for _, p := range pods {
		c.Observe(p)
	}
	return c
}

func (c *Cluster) mustPlace(t testing.TB, p *v1.Pod) string {
	t.Helper()
	d := c.Place(c.Compile(p))
	if d.Node == "" {
		t.Fatalf("%s was not placed: %s", p.Name, d.Message)
	}
	return d.Node
}

func names(prefix string, count int) []string {
	var list []string
	for i := range count {
		list = append(list, fmt.Sprintf("%s%04d", prefix, i))
	}
	return list
}
