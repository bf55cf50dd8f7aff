package controllers_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/controllers/replicagroup"
)

const sizes = `
apiVersion: apps.nodeactor.io/v1alpha1
kind: SizeClass
metadata: {name: %s}
spec: {cpu: %s, memory: %s}
`

const webGroup = `
apiVersion: apps.nodeactor.io/v1alpha1
kind: ReplicaGroup
metadata: {name: web}
spec:
  replicas: 2
  size: small
  podTemplate:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: example.org/web:v1, readinessProbe: {httpGet: {path: /, port: 80}}}
`

func parseYAML(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	var o unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return &o
}

func (p *plane) size(name, cpu, memory string) {
	p.Helper()
	p.must(p.create(replicagroup.SizeKind.Resource, "", fmt.Sprintf(sizes, name, cpu, memory)))
}

// create creates an object of a kind of ours, as soon as that is served.
func (p *plane) create(resource schema.GroupVersionResource, namespace, manifest string) (err error) {
	p.Helper()
	p.eventually(resource.Resource+" are served", func() bool {
		_, err = p.dynamic.Resource(resource).Namespace(namespace).Create(p.ctx, parseYAML(p.T, manifest), metav1.CreateOptions{})
		return !gone(err)
	})
	return err
}

func (p *plane) patchGroup(name, patch string) error {
	_, err := p.dynamic.Resource(replicagroup.Kind.Resource).Namespace("default").Patch(p.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

func (p *plane) group(name string) *replicagroup.Group {
	p.Helper()
	o, err := p.dynamic.Resource(replicagroup.Kind.Resource).Namespace("default").Get(p.ctx, name, metav1.GetOptions{})
	p.must(err)
	text, err := json.Marshal(o)
	p.must(err)
	var g replicagroup.Group
	p.must(json.Unmarshal(text, &g))
	return &g
}

func (p *plane) groups(manifest string) error {
	p.Helper()
	return p.create(replicagroup.Kind.Resource, "default", manifest)
}

// TestF121_ReplicaGroupThroughTheAPI changes the size of a group as users do, and reads all of it back: status, Events, pods, scale.
func TestF121_ReplicaGroupThroughTheAPI(t *testing.T) {
	p := newPlane(t)
	p.size("small", "10m", "16Mi")
	p.size("large", "20m", "32Mi")
	p.must(p.groups(webGroup))
	p.kubelet("default")
	p.eventually("two ready replicas", func() bool { return p.group("web").Status.Ready == "2/2" })
	p.must(p.patchGroup("web", `{"spec":{"size":"large"}}`))
	p.eventually("the change is finalized", func() bool {
		r := p.group("web").Status.Reconfiguration
		return r != nil && r.Status == "Finalized"
	})
	p.eventually("only large pods", func() bool { return p.sizes() == "large large" })
	p.eventually("the audit", func() bool {
		told := p.toldOf("web")
		for _, reason := range []string{"ReconfigurationStarted", "ReplicaCreated", "ReconfigurationFinalized", "ReplicaDropped"} {
			if !strings.Contains(told, reason) {
				return false
			}
		}
		return true
	})
	scale := p.dynamic.Resource(replicagroup.Kind.Resource).Namespace("default")
	_, err := scale.Patch(p.ctx, "web", types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{}, "scale")
	p.must(err)
	p.eventually("three ready replicas", func() bool { return p.group("web").Status.Ready == "3/3" })
	at, err := scale.Get(p.ctx, "web", metav1.GetOptions{}, "scale")
	p.must(err)
	if n, _, _ := unstructured.NestedInt64(at.Object, "status", "replicas"); n != 3 {
		t.Errorf("the scale shows %d replicas", n)
	}
	p.must(scale.Delete(p.ctx, "web", metav1.DeleteOptions{}))
	p.eventually("its pods and versions of the template are gone", func() bool {
		revisions, err := p.client.AppsV1().ControllerRevisions("default").List(p.ctx, metav1.ListOptions{})
		return err == nil && len(revisions.Items) == 0 && len(p.pods("default")) == 0
	})
}

// sizes lists the sizes of the pods, sorted.
func (p *plane) sizes() string {
	var all []string
	for _, pod := range p.pods("default") {
		all = append(all, pod.Labels[replicagroup.SizeLabel])
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// toldOf lists the Events of a group.
func (p *plane) toldOf(group string) string {
	p.Helper()
	events, err := p.client.CoreV1().Events("default").List(p.ctx, metav1.ListOptions{})
	p.must(err)
	var told []string
	for _, e := range events.Items {
		if e.InvolvedObject.Kind == replicagroup.Kind.Name && e.InvolvedObject.Name == group {
			told = append(told, e.Reason+": "+e.Message)
		}
	}
	return strings.Join(told, "\n")
}

// quota limits the cpu that pods may request. The test plays the controller that counts what was there before.
func (p *plane) quota(cpu string) {
	p.Helper()
	quotas := p.client.CoreV1().ResourceQuotas("default")
	hard := corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse(cpu)}
	q, err := quotas.Create(p.ctx, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}, metav1.CreateOptions{})
	p.must(err)
	q.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("0")}}
	_, err = quotas.UpdateStatus(p.ctx, q, metav1.UpdateOptions{})
	p.must(err)
}

// TestF122_AQuotaGivesUpTheChange: the real quota of a namespace refuses the target's replicas.
func TestF122_AQuotaGivesUpTheChange(t *testing.T) {
	p := newPlane(t)
	p.size("small", "10m", "16Mi")
	p.size("large", "20m", "32Mi")
	p.quota("45m")
	p.must(p.groups(webGroup))
	p.kubelet("default")
	p.eventually("two ready replicas", func() bool { return p.group("web").Status.Ready == "2/2" })
	p.must(p.patchGroup("web", `{"spec":{"size":"large"}}`))
	p.eventually("the change is given up", func() bool {
		r := p.group("web").Status.Reconfiguration
		return r != nil && r.Status == "ResourceExhausted"
	})
	p.eventually("what serves is left alone", func() bool { return p.sizes() == "small small" })
	if told := p.toldOf("web"); !strings.Contains(told, "exceeded quota") {
		t.Errorf("told %s", told)
	}
}

func TestBadReplicaGroupsAreRefused(t *testing.T) {
	p := newPlane(t)
	p.size("small", "10m", "16Mi")
	p.must(p.groups(webGroup))
	for name, c := range map[string]struct{ from, to, want string }{
		"negative":           {"replicas: 2", "replicas: -1", "should be greater than or equal to 0"},
		"too many":           {"replicas: 2", "replicas: 1001", "less than or equal to 1000"},
		"no size":            {"size: small", "", "spec.size: Required value"},
		"burst of that size": {"size: small", "size: small\n  hydrationBurst: {size: small}", "the size of the burst is the size of the group"},
		"burst and schedule": {"size: small", "size: small\n  hydrationBurst: {size: large}\n  schedule: {onRefresh: {objects: [{name: a, every: 1h}]}}", "exclude each other"},
		"timeout":            {"size: small", "size: small\n  reconfiguration: {timeout: soon}", "give a duration"},
		"negative timeout":   {"size: small", "size: small\n  reconfiguration: {timeout: -5s}", "give a duration"},
		"on timeout":         {"size: small", "size: small\n  reconfiguration: {onTimeout: Explode}", "supported values: \"Rollback\", \"Commit\""},
		"every":              {"size: small", "size: small\n  schedule: {onRefresh: {objects: [{name: a, every: 1ms}]}}", "from 1s to"},
		"no containers":      {"containers:\n      - {name: web, image: example.org/web:v1, readinessProbe: {httpGet: {path: /, port: 80}}}", "containers: []", "should have at least 1 items"},
		"no image":           {"image: example.org/web:v1, ", "", "image: Required value"},
		"resources":          {"image: example.org/web:v1", "image: x, resources: {limits: {cpu: 1}}", "are those of the size"},
		"restart policy":     {"    spec:\n      containers", "    spec:\n      restartPolicy: Never\n      containers", "supported values: \"Always\""},
		"long name":          {"name: web}", "name: " + strings.Repeat("x", 53) + "}", "52 characters at most"},
		"zones":              {"size: small", "size: small\n  zones: [\"a b\"]", "should match"},
		"no template at all": {"podTemplate:", "annotations:", "podTemplate: Required value"},
	} {
		manifest := strings.Replace(strings.Replace(webGroup, "name: web}\nspec", "name: bad}\nspec", 1), c.from, c.to, 1)
		if name == "long name" {
			manifest = strings.Replace(webGroup, c.from, c.to, 1)
		}
		if err := p.groups(manifest); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	classes := p.dynamic.Resource(replicagroup.SizeKind.Resource)
	for name, c := range map[string]struct{ cpu, memory string }{"words": {"much", "1Gi"}, "zero": {"0", "1Gi"}, "negative": {"1", "-1Gi"}} {
		_, err := classes.Create(p.ctx, parseYAML(t, fmt.Sprintf(sizes, "bad", c.cpu, c.memory)), metav1.CreateOptions{})
		if err == nil || !strings.Contains(err.Error(), "above 0") {
			t.Errorf("size of %s: %v", name, err)
		}
	}
	_, err := classes.Patch(p.ctx, "small", types.MergePatchType, []byte(`{"spec":{"cpu":"20m"}}`), metav1.PatchOptions{})
	if err == nil || !strings.Contains(err.Error(), "a size cannot be changed") {
		t.Errorf("changing a size: %v", err)
	}
}

// TestBadReplicaGroupsThatAreSeenLater: what only the actor can see is told on the group, and heals.
func TestBadReplicaGroupsThatAreSeenLater(t *testing.T) {
	p := newPlane(t)
	p.must(p.groups(webGroup))
	accepted := func() metav1.Condition {
		for _, c := range p.group("web").Status.Conditions {
			if c.Type == replicagroup.ConditionAccepted {
				return c
			}
		}
		return metav1.Condition{}
	}
	p.eventually("an unknown size is told", func() bool {
		return accepted().Reason == "UnknownSize" && strings.Contains(p.toldOf("web"), "there is no SizeClass")
	})
	p.size("small", "10m", "16Mi")
	p.kubelet("default")
	p.eventually("two ready replicas", func() bool { return p.group("web").Status.Ready == "2/2" })
	p.must(p.patchGroup("web", `{"spec":{"podTemplate":{"spec":{"containers":[{"name":"web","image":"x","imagee":"y"}]}}}}`))
	p.eventually("an unknown field is told", func() bool { return strings.Contains(accepted().Message, "imagee") })
	p.must(p.dynamic.Resource(replicagroup.SizeKind.Resource).Delete(p.ctx, "small", metav1.DeleteOptions{}))
	p.eventually("a removed size is told", func() bool {
		return strings.Contains(p.toldOf("web"), "UnknownSize") && p.group("web").Status.Ready == "2/2"
	})
	if got := p.sizes(); got != "small small" {
		t.Errorf("pods of %s are left", got)
	}
}

func TestDefiningAgainWritesNothing(t *testing.T) {
	p := newPlane(t)
	rest := p.client.Discovery().RESTClient()
	p.size("small", "10m", "16Mi") // The kinds are served.
	before := p.definitions()
	p.must(replicagroup.Define(p.ctx, rest))
	if after := p.definitions(); after != before {
		t.Errorf("versions %s became %s", before, after)
	}
}

func (p *plane) definitions() string {
	p.Helper()
	list, err := p.dynamic.Resource(cache.Definitions.Resource).List(p.ctx, metav1.ListOptions{})
	p.must(err)
	var versions []string
	for _, d := range list.Items {
		versions = append(versions, d.GetName()+"@"+d.GetResourceVersion())
	}
	return strings.Join(versions, " ")
}
