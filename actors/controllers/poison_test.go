package controllers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodeactor/nodeactor/actors/operator/kube"
)

// Resources as the API names them.
var (
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	replicaSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	services    = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

// condition reads a condition of any object as STATUS REASON MESSAGE; empty when there is none.
func (p *plane) condition(resource schema.GroupVersionResource, ns, name, kind string) string {
	p.Helper()
	object, err := p.dynamic.Resource(resource).Namespace(ns).Get(p.ctx, name, metav1.GetOptions{})
	p.must(err)
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	p.must(err)
	for _, c := range conditions {
		if c := c.(map[string]any); c["type"] == kind {
			if at, ok := c["lastTransitionTime"].(string); !ok || at == "" {
				p.Errorf("condition %s of %s has no time", kind, name)
			}
			return fmt.Sprintf("%s %s %s", c["status"], c["reason"], c["message"])
		}
	}
	return ""
}

// inject asks for a fault of an object's reconcilers; an empty kind takes the request back.
func (p *plane) inject(resource schema.GroupVersionResource, ns, name, kind string) {
	p.Helper()
	value := fmt.Sprintf("%q", kind)
	if kind == "" {
		value = "null"
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, kube.InjectAnnotation, value)
	_, err := p.dynamic.Resource(resource).Namespace(ns).Patch(p.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	p.must(err)
}

// eventAbout finds the message of an Event of a reason about an object.
func (p *plane) eventAbout(name, reason string) string {
	p.Helper()
	list, err := p.client.CoreV1().Events("").List(p.ctx, metav1.ListOptions{FieldSelector: "reason=" + reason + ",involvedObject.name=" + name})
	p.must(err)
	for _, e := range list.Items {
		return e.Type + " " + e.Message
	}
	return ""
}

// TestP03_APoisonObjectIsToldOnIt gives a Deployment, a Service and a namespace reconcilers that panic: each carries the condition and
// the Event, everything else goes on, and taking the cause away clears it at once.
func TestP03_APoisonObjectIsToldOnIt(t *testing.T) {
	p := newPlane(t)
	p.kubelet("default")
	bad := deployment("bad", 2)
	bad.Annotations = map[string]string{kube.InjectAnnotation: "panic"}
	p.deploy(bad)
	_, err := p.client.CoreV1().Namespaces().Create(p.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "sick", Annotations: bad.Annotations}}, metav1.CreateOptions{})
	p.must(err)
	_, err = p.client.CoreV1().Services("default").Create(p.ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "odd", Annotations: bad.Annotations}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	p.must(err)
	places := []struct {
		resource    schema.GroupVersionResource
		ns, name    string
		controllers []string
	}{
		{deployments, "default", "bad", []string{"deployment: "}},
		{namespaces, "", "sick", []string{"namespace: ", "root-ca: ", "serviceaccount: "}},
		{services, "default", "odd", []string{"endpoints: ", "endpointslice: "}},
	}
	for _, at := range places {
		p.eventually(at.name+" tells of the panic", func() bool {
			c := p.condition(at.resource, at.ns, at.name, kube.ConditionHealthy)
			told := strings.HasPrefix(c, "False "+kube.ReasonRestarting) && strings.Contains(c, "Panic in job pass (stack ")
			for _, controller := range at.controllers {
				told = told && strings.Contains(c, controller)
			}
			return told && strings.Contains(p.eventAbout(at.name, "ReconcilerBackOff"), "Warning Reconciler ")
		})
	}
	p.deploy(deployment("good", 2))
	p.eventually("its sibling is rolled out", func() bool { return p.complete("good") })
	for _, at := range places {
		p.inject(at.resource, at.ns, at.name, "")
		mended := time.Now()
		p.eventually(at.name+" does well", func() bool {
			return strings.HasPrefix(p.condition(at.resource, at.ns, at.name, kube.ConditionHealthy), "True "+kube.ReasonRecovered)
		})
		if took := time.Since(mended); took > 5*time.Second {
			t.Errorf("%s was told to do well %v after it was mended", at.name, took)
		}
		p.eventually("the Event says so", func() bool { return p.eventAbout(at.name, "ReconcilerRecovered") != "" })
	}
	p.eventually("rolled out", func() bool { return p.complete("bad") })
	if c := p.condition(deployments, "default", "bad", kube.ConditionHealthy); c == "" {
		t.Error("the controller's own status takes the condition away")
	}
	if c := p.condition(deployments, "default", "good", kube.ConditionHealthy); c != "" {
		t.Errorf("a healthy object is told %q", c)
	}
}

// rejecting plays a node that has no room: it fails every pod of a set as soon as it is there.
func (p *plane) rejecting(app string, until func() bool) (made int) {
	failed := map[string]bool{}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline) && !until(); time.Sleep(20 * time.Millisecond) {
		for _, pod := range p.pods("default") {
			if pod.Labels["app"] != app || failed[pod.Name] {
				continue
			}
			failed[pod.Name] = true
			patch := `{"status":{"phase":"Failed","reason":"OutOfcpu","message":"Node didn't have enough resource: cpu"}}`
			_, err := p.client.CoreV1().Pods("default").Patch(p.ctx, pod.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
			p.must(err)
		}
	}
	return len(failed)
}

// TestP56_ARejectingNodePausesTheReplicaSetAlone has a node that rejects every pod of one Deployment.
func TestP56_ARejectingNodePausesTheReplicaSetAlone(t *testing.T) {
	p := newPlane(t)
	p.circles = true
	bad := deployment("bad", 3)
	bad.Spec.Template.Spec.NodeName = "n1"
	p.deploy(bad)
	p.eventually("its pods are made", func() bool { return len(p.pods("default")) == 3 })
	set, begin := p.sets()[0].Name, time.Now()
	made := p.rejecting("bad", func() bool {
		return strings.HasPrefix(p.condition(replicaSets, "default", set, kube.ConditionHotLoop), "True CreateReject")
	})
	if took := time.Since(begin); took > 10*time.Second || made > 3+20 {
		t.Errorf("it took %v and %d pods", took, made)
	}
	p.eventually("the Event names both", func() bool {
		e := p.eventAbout(set, "HotLoop")
		return strings.HasPrefix(e, "Warning ") && strings.Contains(e, "reconciler replicaset of default:"+set) && strings.Contains(e, "the kubelet of n1 (OutOfcpu)")
	})
	p.kubelet("default")
	p.deploy(deployment("good", 2))
	p.eventually("another owner goes on", func() bool { return p.complete("good") })
	if c := p.condition(deployments, "default", "good", kube.ConditionHotLoop); c != "" {
		t.Errorf("another owner is told %q", c)
	}
	p.eventually("the pause ends and the pods run", func() bool { return p.complete("bad") })
	p.eventually("the condition says so", func() bool {
		return strings.HasPrefix(p.condition(replicaSets, "default", set, kube.ConditionHotLoop), "False "+kube.ReasonReleased)
	})
}

// TestHotLoop_AStrangerAndOurControllerUndoEachOther scales a set by hand again and again: the Deployment's controller, which scales it
// back, pauses, and the stranger's writes go on.
func TestHotLoop_AStrangerAndOurControllerUndoEachOther(t *testing.T) {
	p := newPlane(t)
	p.circles = true
	p.kubelet("default")
	p.deploy(deployment("web", 1))
	p.eventually("rolled out", func() bool { return p.complete("web") })
	set := p.sets()[0].Name
	told := func() bool {
		return strings.HasPrefix(p.condition(deployments, "default", "web", kube.ConditionHotLoop), "True MutualUndo")
	}
	for rounds := 0; !told(); rounds++ {
		if rounds > 20 {
			t.Fatal("twenty rounds, and nobody pauses")
		}
		_, err := p.client.AppsV1().ReplicaSets("default").Patch(p.ctx, set, types.MergePatchType,
			[]byte(`{"spec":{"minReadySeconds":7}}`), metav1.PatchOptions{FieldManager: "stranger"})
		p.must(err)
		for settle := time.Now().Add(2 * time.Second); time.Now().Before(settle) && !told() && p.minReady(set) == 7; {
			time.Sleep(10 * time.Millisecond)
		}
	}
	p.eventually("the Event names both", func() bool {
		e := p.eventAbout("web", "HotLoop")
		return strings.Contains(e, "reconciler deployment of default:web") && strings.Contains(e, "with stranger undo each other")
	})
}

// TestHotLoop_APersonWhoScalesToAndFroPausesNobody flips a Deployment between two sizes, faster than it settles.
func TestHotLoop_APersonWhoScalesToAndFroPausesNobody(t *testing.T) {
	p := newPlane(t)
	p.kubelet("default")
	p.deploy(deployment("web", 1))
	for i := range 60 {
		p.patch("web", fmt.Sprintf(`{"spec":{"replicas":%d}}`, 1+i%2*2))
		time.Sleep(time.Duration(i%3*40) * time.Millisecond)
	}
	p.patch("web", `{"spec":{"replicas":2}}`)
	p.eventually("it settles", func() bool { return p.complete("web") })
}

func (p *plane) minReady(set string) int32 {
	rs, err := p.client.AppsV1().ReplicaSets("default").Get(p.ctx, set, metav1.GetOptions{})
	p.must(err)
	return rs.Spec.MinReadySeconds
}

// TestP58_NoOpWritesDoNotBumpTheVersion writes what is stored already, in each way there is.
func TestP58_NoOpWritesDoNotBumpTheVersion(t *testing.T) {
	p := newPlane(t)
	p.deploy(deployment("web", 0))
	p.eventually("its set is there", func() bool { return p.complete("web") && len(p.sets()) == 1 })
	time.Sleep(500 * time.Millisecond)
	api := p.client.AppsV1().Deployments("default")
	stored, err := api.Get(p.ctx, "web", metav1.GetOptions{})
	p.must(err)
	revision := p.store.Revision()
	for name, write := range map[string]func() (*appsv1.Deployment, error){
		"update":        func() (*appsv1.Deployment, error) { return api.Update(p.ctx, stored, metav1.UpdateOptions{}) },
		"update status": func() (*appsv1.Deployment, error) { return api.UpdateStatus(p.ctx, stored, metav1.UpdateOptions{}) },
		"patch": func() (*appsv1.Deployment, error) {
			return api.Patch(p.ctx, "web", types.StrategicMergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{})
		},
		"patch status": func() (*appsv1.Deployment, error) {
			return api.Patch(p.ctx, "web", types.MergePatchType, []byte(`{"status":{"replicas":0}}`), metav1.PatchOptions{}, "status")
		},
	} {
		for range 3 {
			after, err := write()
			p.must(err)
			if after.ResourceVersion != stored.ResourceVersion || p.store.Revision() != revision {
				t.Errorf("%s moved the version from %s to %s and the store from %d to %d", name, stored.ResourceVersion, after.ResourceVersion, revision, p.store.Revision())
			}
		}
	}
}
