package controllers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/nodeactor/nodeactor/supervision"
)

func deployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "image:1"}}},
			},
		},
	}
}

func (p *plane) deploy(d *appsv1.Deployment) {
	p.Helper()
	_, err := p.client.AppsV1().Deployments(d.Namespace).Create(p.ctx, d, metav1.CreateOptions{})
	p.must(err)
}

func (p *plane) patch(name, body string) {
	p.Helper()
	_, err := p.client.AppsV1().Deployments("default").Patch(p.ctx, name, types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{})
	p.must(err)
}

// complete tells whether a Deployment is rolled out, as kubectl rollout status does.
func (p *plane) complete(name string) bool {
	d, err := p.client.AppsV1().Deployments("default").Get(p.ctx, name, metav1.GetOptions{})
	p.must(err)
	s := d.Status
	return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == *d.Spec.Replicas && s.Replicas == *d.Spec.Replicas &&
		s.AvailableReplicas == *d.Spec.Replicas
}

func (p *plane) sets() []appsv1.ReplicaSet {
	list, err := p.client.AppsV1().ReplicaSets("default").List(p.ctx, metav1.ListOptions{})
	p.must(err)
	return list.Items
}

func TestDeploymentRollsScalesUndoesAndHeals(t *testing.T) {
	p := newPlane(t)
	p.kubelet("default")
	p.deploy(deployment("web", 3))
	p.eventually("rolled out", func() bool { return p.complete("web") })
	if sets := p.sets(); len(sets) != 1 || sets[0].Annotations["deployment.kubernetes.io/revision"] != "1" {
		t.Fatalf("sets %+v", sets)
	}
	p.patch("web", `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"image:2"}]}}}}`)
	p.eventually("rolled to image:2", func() bool { return p.complete("web") && len(p.sets()) == 2 })
	for _, pod := range p.pods("default") {
		if pod.DeletionTimestamp == nil && pod.Spec.Containers[0].Image != "image:2" {
			t.Errorf("pod %s has %s", pod.Name, pod.Spec.Containers[0].Image)
		}
	}
	p.patch("web", `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"image:1"}]}}}}`)
	p.eventually("undone", func() bool {
		d, err := p.client.AppsV1().Deployments("default").Get(p.ctx, "web", metav1.GetOptions{})
		p.must(err)
		return p.complete("web") && d.Annotations["deployment.kubernetes.io/revision"] == "3"
	})
	p.patch("web", `{"spec":{"replicas":5}}`)
	p.eventually("scaled to 5", func() bool { return p.complete("web") && len(p.pods("default")) == 5 })
	failed := p.pods("default")[0]
	_, err := p.client.CoreV1().Pods("default").Patch(p.ctx, failed.Name, types.StrategicMergePatchType, []byte(`{"status":{"phase":"Failed"}}`), metav1.PatchOptions{}, "status")
	p.must(err)
	p.eventually("a failed pod is replaced", func() bool { return p.complete("web") && len(p.pods("default")) == 6 })
	p.eventually("events tell of it", func() bool { return p.told("ScalingReplicaSet") && p.told("SuccessfulCreate") })
	p.must(p.client.AppsV1().Deployments("default").Delete(p.ctx, "web", metav1.DeleteOptions{}))
	p.eventually("all gone", func() bool { return len(p.sets()) == 0 && len(p.pods("default")) == 0 })
}

func TestAdoptionAndRelease(t *testing.T) {
	p := newPlane(t)
	p.kubelet("default")
	p.deploy(deployment("web", 2))
	p.eventually("rolled out", func() bool { return p.complete("web") })
	set, pods := p.sets()[0], p.pods("default")
	orphan := metav1.DeletePropagationOrphan
	p.must(p.client.AppsV1().Deployments("default").Delete(p.ctx, "web", metav1.DeleteOptions{PropagationPolicy: &orphan}))
	p.eventually("orphaned", func() bool { sets := p.sets(); return len(sets) == 1 && len(sets[0].OwnerReferences) == 0 })
	p.eventually("the deployment is gone", func() bool {
		_, err := p.client.AppsV1().Deployments("default").Get(p.ctx, "web", metav1.GetOptions{})
		return gone(err)
	})
	p.deploy(deployment("web", 2))
	p.eventually("adopted", func() bool {
		sets := p.sets()
		return len(sets) == 1 && sets[0].UID == set.UID && len(sets[0].OwnerReferences) == 1 && p.complete("web")
	})
	if now := p.pods("default"); len(now) != 2 {
		t.Errorf("%d pods after adoption", len(now))
	}
	_, err := p.client.CoreV1().Pods("default").Patch(p.ctx, pods[0].Name, types.StrategicMergePatchType, []byte(`{"metadata":{"labels":{"app":"other"}}}`), metav1.PatchOptions{})
	p.must(err)
	p.eventually("released and replaced", func() bool {
		released, err := p.client.CoreV1().Pods("default").Get(p.ctx, pods[0].Name, metav1.GetOptions{})
		p.must(err)
		return len(released.OwnerReferences) == 0 && len(p.pods("default")) == 3 && p.complete("web")
	})
	_, err = p.client.CoreV1().Pods("default").Patch(p.ctx, pods[0].Name, types.StrategicMergePatchType, []byte(`{"metadata":{"labels":{"app":"web"}}}`), metav1.PatchOptions{})
	p.must(err)
	p.eventually("taken back, one of three goes", func() bool { return len(p.pods("default")) == 2 && p.complete("web") })
}

func (p *plane) told(reason string) bool {
	list, err := p.client.CoreV1().Events("default").List(p.ctx, metav1.ListOptions{FieldSelector: "reason=" + reason})
	p.must(err)
	return len(list.Items) > 0 && list.Items[0].Source.Component != "" && list.Items[0].InvolvedObject.UID != ""
}

// TestManyPodsAreMadeFast logs what 500 pods cost; the bound is wide, since the machine may be loaded.
func TestManyPodsAreMadeFast(t *testing.T) {
	p := newPlane(t)
	p.deploy(deployment("warm", 1))
	p.eventually("warmed up", func() bool { return len(p.pods("default")) == 1 })
	begin := time.Now()
	p.deploy(deployment("many", 500))
	p.eventually("500 pods", func() bool { return p.store.Counts()["pods"] == 501 })
	took := time.Since(begin)
	t.Logf("500 pods after %v", took)
	begin = time.Now()
	p.must(p.client.AppsV1().Deployments("default").Delete(p.ctx, "many", metav1.DeleteOptions{}))
	p.eventually("one pod", func() bool { return p.store.Counts()["pods"] == 1 })
	t.Logf("gone after %v", time.Since(begin))
	if took += time.Since(begin); took > 20*time.Second {
		t.Errorf("500 pods took %v", took)
	}
}

func TestServicesGetEndpoints(t *testing.T) {
	p := newPlane(t)
	p.kubelet("default")
	_, err := p.client.CoreV1().Services("default").Create(p.ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{
			Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080),
		}}},
	}, metav1.CreateOptions{})
	p.must(err)
	p.deploy(deployment("web", 1))
	p.eventually("a ready address in the old form", func() bool { return p.addresses() == 1 })
	_, err = p.client.CoreV1().Nodes().Create(p.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, metav1.CreateOptions{})
	p.must(err)
	p.eventually("a ready address in both", func() bool { return p.addresses() == 1 && p.sliced() == 1 })
	p.patch("web", `{"spec":{"replicas":0}}`)
	p.eventually("no address", func() bool { return p.addresses() == 0 && p.sliced() == 0 })
	p.must(p.client.CoreV1().Services("default").Delete(p.ctx, "web", metav1.DeleteOptions{}))
	p.eventually("nothing left of the service", func() bool {
		_, err := p.client.CoreV1().Endpoints("default").Get(p.ctx, "web", metav1.GetOptions{})
		slices, listErr := p.client.DiscoveryV1().EndpointSlices("default").List(p.ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=web"})
		return gone(err) && listErr == nil && len(slices.Items) == 0
	})
}

func (p *plane) addresses() (n int) {
	e, err := p.client.CoreV1().Endpoints("default").Get(p.ctx, "web", metav1.GetOptions{})
	if err != nil {
		return -1
	}
	for _, s := range e.Subsets {
		n += len(s.Addresses)
	}
	return n
}

func (p *plane) sliced() (n int) {
	list, err := p.client.DiscoveryV1().EndpointSlices("default").List(p.ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=web"})
	p.must(err)
	if len(list.Items) == 0 {
		return -1
	}
	for _, s := range list.Items {
		for _, e := range s.Endpoints {
			if e.Conditions.Ready != nil && *e.Conditions.Ready {
				n++
			}
		}
	}
	return n
}

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

func (p *plane) defineWidgets() {
	p.Helper()
	yes := true
	crd := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &yes}}}},
		},
	}
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	p.must(err)
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	_, err = p.dynamic.Resource(crds).Create(p.ctx, &unstructured.Unstructured{Object: body}, metav1.CreateOptions{})
	p.must(err)
}

func (p *plane) widget(ns, name string, owners ...map[string]any) *unstructured.Unstructured {
	w := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": name}}}
	if len(owners) > 0 {
		refs := make([]any, len(owners))
		for i := range owners {
			refs[i] = owners[i]
		}
		w.Object["metadata"].(map[string]any)["ownerReferences"] = refs
	}
	var made *unstructured.Unstructured
	p.eventually("widget "+name+" is accepted", func() (ok bool) {
		var err error
		made, err = p.dynamic.Resource(widgets).Namespace(ns).Create(p.ctx, w, metav1.CreateOptions{})
		return err == nil
	})
	return made
}

func (p *plane) hasWidget(ns, name string) bool {
	_, err := p.dynamic.Resource(widgets).Namespace(ns).Get(p.ctx, name, metav1.GetOptions{})
	return err == nil
}

func refTo(o *unstructured.Unstructured) map[string]any {
	return map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "name": o.GetName(), "uid": string(o.GetUID()), "blockOwnerDeletion": true}
}

func TestGarbageIsCollectedByEveryPolicy(t *testing.T) {
	p := newPlane(t)
	p.defineWidgets()
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		name := strings.ToLower(string(policy))
		owner := p.widget("default", name+"-owner")
		child := p.widget("default", name+"-child", refTo(owner))
		p.widget("default", name+"-grandchild", refTo(child))
		p.must(p.dynamic.Resource(widgets).Namespace("default").Delete(p.ctx, owner.GetName(), metav1.DeleteOptions{PropagationPolicy: &policy}))
		p.eventually(name+": owner gone", func() bool { return !p.hasWidget("default", owner.GetName()) })
		if policy == metav1.DeletePropagationOrphan {
			kept, err := p.dynamic.Resource(widgets).Namespace("default").Get(p.ctx, child.GetName(), metav1.GetOptions{})
			p.must(err)
			if len(kept.GetOwnerReferences()) != 0 || !p.hasWidget("default", name+"-grandchild") {
				t.Errorf("orphan: references %v", kept.GetOwnerReferences())
			}
			continue
		}
		if policy == metav1.DeletePropagationForeground && p.hasWidget("default", name+"-grandchild") {
			t.Error("foreground: the owner went before its dependents")
		}
		p.eventually(name+": dependents gone", func() bool {
			return !p.hasWidget("default", child.GetName()) && !p.hasWidget("default", name+"-grandchild")
		})
	}
	never := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "never", "uid": "00000000-0000-0000-0000-000000000000"}
	p.widget("default", "absent", never)
	p.eventually("an object whose owner never was is collected", func() bool { return !p.hasWidget("default", "absent") })
}

func TestNamespaceIsEmptiedAndEquipped(t *testing.T) {
	p := newPlane(t)
	p.defineWidgets()
	_, err := p.client.CoreV1().Namespaces().Create(p.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "temp"}}, metav1.CreateOptions{})
	p.must(err)
	p.eventually("account and authority", func() bool {
		_, accountErr := p.client.CoreV1().ServiceAccounts("temp").Get(p.ctx, "default", metav1.GetOptions{})
		m, mapErr := p.client.CoreV1().ConfigMaps("temp").Get(p.ctx, "kube-root-ca.crt", metav1.GetOptions{})
		return accountErr == nil && mapErr == nil && m.Data["ca.crt"] == "CA"
	})
	p.widget("temp", "w")
	d := deployment("web", 3)
	d.Namespace = "temp"
	p.deploy(d)
	p.eventually("pods", func() bool { return len(p.pods("temp")) == 3 })
	p.kubelet("temp")
	begin := time.Now()
	p.must(p.client.CoreV1().Namespaces().Delete(p.ctx, "temp", metav1.DeleteOptions{}))
	p.eventually("the namespace is gone", func() bool {
		_, err := p.client.CoreV1().Namespaces().Get(p.ctx, "temp", metav1.GetOptions{})
		return gone(err)
	})
	t.Logf("gone after %v", time.Since(begin))
	items, _ := p.store.List("/registry/")
	for _, item := range items {
		if strings.Contains(item.Key, "/temp/") || strings.HasSuffix(item.Key, "/temp") {
			t.Errorf("left behind: %s", item.Key)
		}
	}
}

// TestP08_AtRestNothingMoves leaves a settled cluster alone for longer than the fallback: the store's revision stays, and no actor does
// more than its fallback asks of it.
func TestP08_AtRestNothingMoves(t *testing.T) {
	if testing.Short() {
		t.Skip("a minute of rest is not for -short")
	}
	p := newPlane(t)
	_, err := p.client.CoreV1().Nodes().Create(p.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, metav1.CreateOptions{})
	p.must(err)
	p.node(func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	})
	stop := p.kubelet("default")
	p.deploy(deployment("web", 3))
	p.eventually("rolled out", func() bool { return p.complete("web") })
	time.Sleep(2 * time.Second)
	stop()
	time.Sleep(2 * time.Second)
	before, handled := p.store.Revision(), p.handled()
	time.Sleep(40 * time.Second)
	if after := p.store.Revision(); after != before {
		t.Errorf("the revision moved from %d to %d", before, after)
	}
	for path, n := range p.handled() {
		if n -= handled[path]; n > messagesAtRest {
			t.Errorf("%s handled %d messages", path, n)
		}
	}
}

// messagesAtRest is what an actor may handle in 40 s of rest: two fallbacks, each a tick and the end of a pass, and some reserve.
const messagesAtRest = 8

// handled is how many messages each actor has taken.
func (p *plane) handled() map[string]uint64 {
	handled := map[string]uint64{}
	p.system.Inspect().Walk(func(n supervision.Node) bool {
		handled[n.Path] = n.Handled
		return true
	})
	return handled
}

// TestPanicsAreContained injects a panic into a dispatcher and an actor: both come back and the work goes on.
func TestPanicsAreContained(t *testing.T) {
	p := newPlane(t)
	p.deploy(deployment("web", 1))
	p.eventually("one pod", func() bool { return len(p.pods("default")) == 1 })
	for i, path := range []string{"controllers/deployment/manifests/default:web", "controllers/replicaset/dispatcher"} {
		if err := p.system.Restart(path); err != nil {
			t.Fatal(err)
		}
		p.patch("web", fmt.Sprintf(`{"spec":{"replicas":%d}}`, i+2))
		p.eventually("scaled", func() bool { return len(p.pods("default")) == i+2 })
	}
}

func (p *plane) node(change func(*corev1.Node)) {
	p.Helper()
	p.eventually("the node is written", func() bool {
		node, err := p.client.CoreV1().Nodes().Get(p.ctx, "n1", metav1.GetOptions{})
		p.must(err)
		change(node)
		taints, unschedulable := node.Spec.Taints, node.Spec.Unschedulable
		if node, err = p.client.CoreV1().Nodes().UpdateStatus(p.ctx, node, metav1.UpdateOptions{}); err != nil {
			return false
		}
		node.Spec.Taints, node.Spec.Unschedulable = taints, unschedulable
		_, err = p.client.CoreV1().Nodes().Update(p.ctx, node, metav1.UpdateOptions{})
		return err == nil
	})
}

func (p *plane) taints() string {
	node, err := p.client.CoreV1().Nodes().Get(p.ctx, "n1", metav1.GetOptions{})
	p.must(err)
	var all []string
	for _, taint := range node.Spec.Taints {
		all = append(all, strings.TrimPrefix(taint.Key, "node.kubernetes.io/")+":"+string(taint.Effect))
	}
	return strings.Join(all, " ")
}

func TestNodesAreTaintedAndEvict(t *testing.T) {
	p := newPlane(t)
	_, err := p.client.CoreV1().Nodes().Create(p.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, metav1.CreateOptions{})
	p.must(err)
	p.eventually("not ready", func() bool { return p.taints() == "not-ready:NoSchedule" })
	ready := func(status corev1.ConditionStatus) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastHeartbeatTime: metav1.Now()}}
		}
	}
	p.node(ready(corev1.ConditionTrue))
	p.eventually("ready", func() bool { return p.taints() == "" })
	p.node(func(n *corev1.Node) { n.Spec.Unschedulable = true })
	p.eventually("cordoned", func() bool { return p.taints() == "unschedulable:NoSchedule" })
	p.node(func(n *corev1.Node) { n.Spec.Unschedulable = false })
	p.kubelet("default")
	p.deploy(deployment("web", 2))
	p.eventually("rolled out", func() bool { return p.complete("web") })
	before := p.pods("default")
	p.node(func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "out", Effect: corev1.TaintEffectNoExecute})
	})
	p.eventually("evicted", func() bool {
		for _, pod := range p.pods("default") {
			if pod.UID == before[0].UID || pod.UID == before[1].UID {
				return false
			}
		}
		return true
	})
}
