package apiserver

import (
	"context"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

const widgetDefinition = `
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    additionalPrinterColumns: [{name: Replicas, type: integer, jsonPath: .spec.replicas}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            description: what the widget shall be
            x-kubernetes-validations: [{rule: "self.replicas <= self.limit", message: "more replicas than the limit"}]
            properties:
              replicas: {type: integer, default: 1}
              limit: {type: integer, default: 5}
          status: {type: object, properties: {replicas: {type: integer}}}
`

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// define creates the definition and waits until its resource is served.
func define(t *testing.T, f *fixture) dynamic.NamespaceableResourceInterface {
	t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict([]byte(widgetDefinition), &crd); err != nil {
		t.Fatal(err)
	}
	config := f.dynamicConfig()
	if _, err := clientset.NewForConfigOrDie(config).ApiextensionsV1().CustomResourceDefinitions().Create(f.ctx, &crd, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	client := dynamic.NewForConfigOrDie(config).Resource(widgets)
	eventually(t, f.ctx, func() error {
		_, err := client.List(f.ctx, metav1.ListOptions{})
		return err
	})
	return client
}

// eventually repeats the check until it passes, and fails with its last error.
func eventually(t *testing.T, ctx context.Context, check func() error) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func widget(name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

func TestCustomResource(t *testing.T) {
	f := newFixture(t)
	client := define(t, f).Namespace("default")
	got, err := client.Create(f.ctx, widget("w", map[string]any{"unknown": "x"}), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	spec := got.Object["spec"].(map[string]any)
	if spec["replicas"] != int64(1) || spec["limit"] != int64(5) || spec["unknown"] != nil {
		t.Errorf("defaults or pruning are missing: %v", spec)
	}
	_, err = client.Create(f.ctx, widget("v", map[string]any{"replicas": int64(6)}), metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "more replicas than the limit") {
		t.Errorf("the rule gave %v", err)
	}
	scale, err := client.Get(f.ctx, "w", metav1.GetOptions{}, "scale")
	if err != nil || scale.GetKind() != "Scale" {
		t.Errorf("got %v, %v", scale, err)
	}
	w, err := client.Watch(f.ctx, metav1.ListOptions{ResourceVersion: got.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if err := client.Delete(f.ctx, "w", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case event := <-w.ResultChan():
		if event.Type != "DELETED" {
			t.Errorf("got %v", event)
		}
	case <-time.After(5 * time.Second):
		t.Error("no event")
	}
}

func TestCustomResourceInDiscoveryAndOpenAPI(t *testing.T) {
	f := newFixture(t)
	config := f.listen(t)
	define(t, f)
	for _, legacy := range []bool{false, true} {
		client := discovery.NewDiscoveryClientForConfigOrDie(config)
		client.UseLegacyDiscovery = legacy
		eventually(t, f.ctx, func() error {
			groups, err := client.ServerGroups()
			if err != nil {
				return err
			}
			for _, group := range groups.Groups {
				if group.Name == widgets.Group {
					return nil
				}
			}
			return apierrors.NewNotFound(schema.GroupResource{}, widgets.Group)
		})
	}
	client := discovery.NewDiscoveryClientForConfigOrDie(config)
	paths, err := client.OpenAPIV3().Paths()
	if err != nil {
		t.Fatal(err)
	}
	if text := openAPISchema(t, paths["apis/example.com/v1"], "com.example.v1.Widget"); !strings.Contains(text, "what the widget shall be") {
		t.Errorf("got %s", text)
	}
	v2, err := client.OpenAPISchema()
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, definition := range v2.GetDefinitions().GetAdditionalProperties() {
		found = found || definition.Name == "com.example.v1.Widget"
	}
	if !found {
		t.Error("the v2 document does not know the custom resource")
	}
}

func TestCustomResourcesSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	t.Run("before", func(t *testing.T) {
		f := newFixtureIn(t, dir, Config{})
		if _, err := define(t, f).Namespace("default").Create(f.ctx, widget("w", map[string]any{}), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("after", func(t *testing.T) {
		f := newFixtureIn(t, dir, Config{})
		client := dynamic.NewForConfigOrDie(f.dynamicConfig()).Resource(widgets).Namespace("default")
		eventually(t, f.ctx, func() error {
			_, err := client.Get(f.ctx, "w", metav1.GetOptions{})
			if apierrors.IsNotFound(err) && !strings.Contains(err.Error(), "could not find the requested resource") {
				t.Fatal(err)
			}
			return err
		})
	})
}
