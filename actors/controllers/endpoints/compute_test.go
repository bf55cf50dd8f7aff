package endpoints

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func service(changes ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", Labels: map[string]string{"app": "web"}},
		Spec: corev1.ServiceSpec{
			ClusterIP: "10.96.0.9", Selector: map[string]string{"app": "web"},
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("web"), Protocol: corev1.ProtocolTCP}},
		},
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

func pod(n int, ready bool) *corev1.Pod {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("p", n), UID: types.UID(fmt.Sprint(n))},
		Spec: corev1.PodSpec{NodeName: "n1", Hostname: "h", Subdomain: "web", Containers: []corev1.Container{{
			Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
		}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: address(n), PodIPs: []corev1.PodIP{{IP: address(n)}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: status}},
		},
	}
}

func address(n int) string { return fmt.Sprintf("10.244.%d.%d", n/250, n%250+1) }

func count(subsets []corev1.EndpointSubset) (ready, waiting int) {
	for _, s := range subsets {
		ready += len(s.Addresses)
		waiting += len(s.NotReadyAddresses)
	}
	return ready, waiting
}

func TestReadyAndUnreadyAreKeptApart(t *testing.T) {
	subsets := subsetsOf(service(), []*corev1.Pod{pod(1, true), pod(2, false)})
	if len(subsets) != 1 || subsets[0].Ports[0].Port != 8080 || subsets[0].Ports[0].Name != "http" {
		t.Fatalf("subsets %+v", subsets)
	}
	if ready, waiting := count(subsets); ready != 1 || waiting != 1 {
		t.Errorf("%d ready, %d not", ready, waiting)
	}
	a := subsets[0].Addresses[0]
	if a.Hostname != "h" || *a.NodeName != "n1" || a.TargetRef.Name != "p1" {
		t.Errorf("address %+v", a)
	}
}

func TestPodsThatAreNotServed(t *testing.T) {
	now := metav1.Now()
	terminating, finished, homeless, portless := pod(1, true), pod(2, true), pod(3, true), pod(4, true)
	terminating.DeletionTimestamp = &now
	finished.Status.Phase = corev1.PodSucceeded
	homeless.Status.PodIP, homeless.Status.PodIPs = "", nil
	portless.Spec.Containers[0].Ports = nil
	if subsets := subsetsOf(service(), []*corev1.Pod{terminating, finished, homeless, portless}); len(subsets) != 0 {
		t.Errorf("subsets %+v", subsets)
	}
}

func TestPublishNotReadyAddresses(t *testing.T) {
	s := service(func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = true })
	if ready, waiting := count(subsetsOf(s, []*corev1.Pod{pod(1, false)})); ready != 1 || waiting != 0 {
		t.Errorf("%d ready, %d not", ready, waiting)
	}
}

func TestHeadlessWithoutPorts(t *testing.T) {
	s := service(func(s *corev1.Service) { s.Spec.ClusterIP, s.Spec.Ports = corev1.ClusterIPNone, nil })
	e := wanted(&corev1.Endpoints{}, s, []*corev1.Pod{pod(1, true)})
	if ready, _ := count(e.Subsets); ready != 1 || len(e.Subsets[0].Ports) != 0 {
		t.Errorf("subsets %+v", e.Subsets)
	}
	if _, ok := e.Labels[corev1.IsHeadlessService]; !ok || e.Labels[managedBy] != component || e.Labels["app"] != "web" {
		t.Errorf("labels %v", e.Labels)
	}
}

func TestWantedIsStable(t *testing.T) {
	pods := []*corev1.Pod{pod(1, true), pod(2, false), pod(3, true)}
	first := wanted(&corev1.Endpoints{}, service(), pods)
	pods[0], pods[2] = pods[2], pods[0]
	if second := wanted(first, service(), pods); !same(first, second) {
		t.Errorf("%+v became %+v", first, second)
	}
}

func TestBeyondCapacity(t *testing.T) {
	var pods []*corev1.Pod
	for n := range 1300 {
		pods = append(pods, pod(n, n%2 == 0))
	}
	e := wanted(&corev1.Endpoints{}, service(), pods)
	if ready, waiting := count(e.Subsets); ready != 650 || waiting != 350 || e.Annotations[corev1.EndpointsOverCapacity] != truncated {
		t.Errorf("%d ready, %d not, %v", ready, waiting, e.Annotations)
	}
	if again := wanted(e, service(), pods[:10]); again.Annotations[corev1.EndpointsOverCapacity] != "" {
		t.Error("the mark stays")
	}
}
