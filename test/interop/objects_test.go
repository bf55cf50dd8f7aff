package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
)

var (
	widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	crds    = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

const widgetCRD = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},
"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList"},
"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object",
"properties":{"spec":{"type":"object","properties":{"size":{"type":"integer","default":3}}}}}}}]}}`

func parse(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	must(t, u.UnmarshalJSON([]byte(text)))
	return u
}

// defineWidgets makes the custom resource and waits until it is served.
func defineWidgets(ctx context.Context, t testing.TB, c dynamic.Interface) {
	t.Helper()
	_, err := c.Resource(crds).Create(ctx, parse(t, widgetCRD), metav1.CreateOptions{})
	must(t, err)
	servesWidgets(ctx, t, c)
}

func servesWidgets(ctx context.Context, t testing.TB, c dynamic.Interface) {
	t.Helper()
	eventually(t, 20*time.Second, func() error {
		_, err := c.Resource(widgets).Namespace("default").List(ctx, metav1.ListOptions{})
		return err
	})
}

func widget(t testing.TB, ns, name string) *unstructured.Unstructured {
	t.Helper()
	return parse(t, fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":%q,"namespace":%q},"spec":{}}`, name, ns))
}

func configMap(ns, name, value string) *v1.ConfigMap {
	return &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Data: map[string]string{"value": value}}
}

// deployment has no replicas: nothing is to run.
func deployment(ns, name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "none.invalid/none"}}}},
	}}
}

// makeObjects fills a namespace with some of everything.
func makeObjects(ctx context.Context, t testing.TB, c kubernetes.Interface, d dynamic.Interface, ns string) {
	t.Helper()
	_, err := c.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{})
	must(t, err)
	for i := range 20 {
		_, err := c.CoreV1().ConfigMaps(ns).Create(ctx, configMap(ns, numbered("cm", i), "1"), metav1.CreateOptions{})
		must(t, err)
		_, err = d.Resource(widgets).Namespace(ns).Create(ctx, widget(t, ns, numbered("w", i)), metav1.CreateOptions{})
		must(t, err)
	}
	_, err = c.CoreV1().Secrets(ns).Create(ctx, &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Data: map[string][]byte{"k": {0, 1, 255}}}, metav1.CreateOptions{})
	must(t, err)
	_, err = c.CoreV1().Services(ns).Create(ctx, &v1.Service{ObjectMeta: metav1.ObjectMeta{Name: "svc"}, Spec: v1.ServiceSpec{Ports: []v1.ServicePort{{Port: 80}}}}, metav1.CreateOptions{})
	must(t, err)
	_, err = c.AppsV1().Deployments(ns).Create(ctx, deployment(ns, "d"), metav1.CreateOptions{})
	must(t, err)
}

// stored is a resource and where its objects are.
type stored struct{ path, prefix string }

// resources are some of every kind of key.
var resources = []stored{
	{"/api/v1/namespaces", "/registry/namespaces/"},
	{"/api/v1/configmaps", "/registry/configmaps/"},
	{"/api/v1/secrets", "/registry/secrets/"},
	{"/api/v1/serviceaccounts", "/registry/serviceaccounts/"},
	{"/api/v1/services", "/registry/services/specs/"},
	{"/api/v1/nodes", "/registry/minions/"},
	{"/apis/apps/v1/deployments", "/registry/deployments/"},
	{"/apis/apps/v1/replicasets", "/registry/replicasets/"},
	{"/apis/coordination.k8s.io/v1/leases", "/registry/leases/"},
	{"/apis/rbac.authorization.k8s.io/v1/clusterroles", "/registry/clusterroles/"},
	{"/apis/scheduling.k8s.io/v1/priorityclasses", "/registry/priorityclasses/"},
	{"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/registry/apiextensions.k8s.io/customresourcedefinitions/"},
	{"/apis/example.com/v1/widgets", "/registry/example.com/widgets/"},
}

// listed is an API list: its objects by key below the prefix, and its revision.
func listed(ctx context.Context, t testing.TB, c kubernetes.Interface, path string) (objects map[string]runtime.Object, revision int64) {
	t.Helper()
	raw, err := c.Discovery().RESTClient().Get().AbsPath(path).DoRaw(ctx)
	must(t, err)
	var list struct {
		APIVersion, Kind string
		Metadata         metav1.ListMeta
		Items            []map[string]any
	}
	must(t, json.Unmarshal(raw, &list))
	revision, err = strconv.ParseInt(list.Metadata.ResourceVersion, 10, 64)
	must(t, err)
	objects = map[string]runtime.Object{}
	for _, item := range list.Items {
		item["apiVersion"], item["kind"] = list.APIVersion, list.Kind[:len(list.Kind)-len("List")]
		one, err := json.Marshal(item)
		must(t, err)
		o := decoded(t, one)
		objects[keyOf(t, o)] = o
	}
	return objects, revision
}

// keyOf is an object's key below its prefix.
func keyOf(t testing.TB, o runtime.Object) string {
	t.Helper()
	m, err := meta.Accessor(o)
	must(t, err)
	if m.GetNamespace() == "" {
		return m.GetName()
	}
	return m.GetNamespace() + "/" + m.GetName()
}

// decoded reads a stored or served object, in any encoding, as upstream's client library does.
func decoded(t testing.TB, data []byte) runtime.Object {
	t.Helper()
	o, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		u := &unstructured.Unstructured{}
		must(t, u.UnmarshalJSON(data))
		return u
	}
	must(t, err)
	o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return o
}

// sameAsStored compares an API list of each resource with what etcdctl gets of the prefix at the list's revision: keys and objects.
func sameAsStored(ctx context.Context, t testing.TB, c kubernetes.Interface, etcdctl *ctl) (objects int) {
	t.Helper()
	for _, r := range resources {
		want, revision := listed(ctx, t, c, r.path)
		got := etcdctl.get("--prefix", r.prefix, "--rev", strconv.FormatInt(revision, 10))
		if len(got.KVs) != len(want) || got.Count != int64(len(want)) || len(want) == 0 {
			t.Errorf("%s at %d: etcdctl gets %d, the API lists %d", r.path, revision, len(got.KVs), len(want))
		}
		for _, kv := range got.KVs {
			o := decoded(t, []byte(kv.Value))
			m, err := meta.Accessor(o)
			must(t, err)
			m.SetResourceVersion(strconv.FormatInt(kv.Mod, 10))
			if key := string(kv.Key)[len(r.prefix):]; !equality.Semantic.DeepEqual(o, want[key]) {
				t.Errorf("%s: stored %v, served %v", kv.Key, o, want[key])
			}
		}
		objects += len(got.KVs)
	}
	return objects
}
