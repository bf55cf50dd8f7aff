package controllers_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// alive are the pods of the namespace that neither end nor have failed.
func (p *plane) alive() (names map[string]bool) {
	names = map[string]bool{}
	for _, pod := range p.pods("default") {
		if pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed {
			names[pod.Name] = true
		}
	}
	return names
}

// TestF021_AReplicaSetKeepsItsNumber: one pod for each that goes, failed ones not counted, up and down.
func TestF021_AReplicaSetKeepsItsNumber(t *testing.T) {
	p := newPlane(t)
	p.kubelet("default")
	two, d := int32(2), deployment("web", 2)
	set := &appsv1.ReplicaSet{ObjectMeta: d.ObjectMeta, Spec: appsv1.ReplicaSetSpec{Replicas: &two, Selector: d.Spec.Selector, Template: d.Spec.Template}}
	_, err := p.client.AppsV1().ReplicaSets("default").Create(p.ctx, set, metav1.CreateOptions{})
	p.must(err)
	has := func(n int32) func() bool {
		return func() bool {
			sets := p.sets()
			s := sets[0].Status
			return len(p.alive()) == int(n) && s.Replicas == n && s.ReadyReplicas == n && s.ObservedGeneration == sets[0].Generation
		}
	}
	p.eventually("two pods", has(2))
	before := p.pods("default")
	p.must(p.client.CoreV1().Pods("default").Delete(p.ctx, before[0].Name, metav1.DeleteOptions{}))
	p.eventually("one in its place", func() bool { return has(2)() && !p.alive()[before[0].Name] })
	if !p.alive()[before[1].Name] {
		t.Errorf("alive are %v", p.alive())
	}
	p.made(3)
	_, err = p.client.CoreV1().Pods("default").Patch(p.ctx, before[1].Name, types.StrategicMergePatchType, []byte(`{"status":{"phase":"Failed"}}`), metav1.PatchOptions{}, "status")
	p.must(err)
	p.eventually("a failed one does not count", func() bool { return has(2)() && !p.alive()[before[1].Name] })
	for _, n := range []int32{4, 1} {
		_, err := p.client.AppsV1().ReplicaSets("default").Patch(p.ctx, "web", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n), metav1.PatchOptions{}, "scale")
		p.must(err)
		p.eventually("scaled", has(n))
	}
	p.made(6)
}

// made waits until the ReplicaSet has told that it made so many pods, and no more.
func (p *plane) made(want int) {
	p.Helper()
	told := 0
	p.eventually("its Events are written", func() bool {
		list, err := p.client.CoreV1().Events("default").List(p.ctx, metav1.ListOptions{FieldSelector: "reason=SuccessfulCreate"})
		p.must(err)
		told = len(list.Items)
		return told >= want
	})
	if told != want {
		p.Errorf("%d pods were made, want %d", told, want)
	}
}

// TestF028_EndpointsFollowReadiness: in both forms, a pod that is not ready is no endpoint, and is one again when it is.
func TestF028_EndpointsFollowReadiness(t *testing.T) {
	p := newPlane(t)
	_, err := p.client.CoreV1().Nodes().Create(p.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, metav1.CreateOptions{})
	p.must(err)
	_, err = p.client.CoreV1().Services("default").Create(p.ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}},
	}, metav1.CreateOptions{})
	p.must(err)
	stop := p.kubelet("default")
	p.deploy(deployment("web", 2))
	p.eventually("two in both", func() bool { return p.addresses() == 2 && p.sliced() == 2 })
	stop() // From now on the test is the kubelet.
	name := p.pods("default")[0].Name
	for _, ready := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue} {
		p.says(name, ready)
		want := map[corev1.ConditionStatus]int{corev1.ConditionFalse: 1, corev1.ConditionTrue: 2}[ready]
		p.eventually("as many as are ready", func() bool { return p.addresses() == want && p.sliced() == want })
	}
}

// says writes the readiness of a pod.
func (p *plane) says(name string, ready corev1.ConditionStatus) {
	p.Helper()
	pod, err := p.client.CoreV1().Pods("default").Get(p.ctx, name, metav1.GetOptions{})
	p.must(err)
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			pod.Status.Conditions[i].Status = ready
		}
	}
	_, err = p.client.CoreV1().Pods("default").UpdateStatus(p.ctx, pod, metav1.UpdateOptions{})
	p.must(err)
}
