package controllers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

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
	_, err := p.dynamic.Resource(replicagroup.SizeKind.Resource).Create(p.ctx, parseYAML(p.T, fmt.Sprintf(sizes, name, cpu, memory)), metav1.CreateOptions{})
	p.must(err)
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
	_, err := p.dynamic.Resource(replicagroup.Kind.Resource).Namespace("default").Create(p.ctx, parseYAML(p.T, manifest), metav1.CreateOptions{})
	return err
}

func TestReplicaGroupTheWholeWay(t *testing.T) {
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
	p.eventually("only large pods", func() bool {
		pods := p.pods("default")
		for _, pod := range pods {
			if pod.Labels[replicagroup.SizeLabel] != "large" {
				return false
			}
		}
		return len(pods) == 2
	})
	text, _ := json.MarshalIndent(p.group("web").Status, "", " ")
	t.Logf("%s", text)
	events, err := p.client.CoreV1().Events("default").List(context.Background(), metav1.ListOptions{})
	p.must(err)
	var told []string
	for _, e := range events.Items {
		if e.InvolvedObject.Kind == "ReplicaGroup" {
			told = append(told, e.Reason+": "+e.Message)
		}
	}
	t.Log(strings.Join(told, "\n"))
}
