// Command websites is a node with an operator of its own: a Website becomes a page in a ConfigMap.
package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/nodeactor/nodeactor/actors/operator"
	"github.com/nodeactor/nodeactor/actors/operator/served"
	"github.com/nodeactor/nodeactor/program"
)

func main() {
	program.Main(program.Operator(websites{}, operator.OperatorConfig{}, served.Owning("ConfigMap")))
}

// website is what users declare.
type website struct {
	Title  string `json:"title" min:"1" doc:"What the page says."`
	Copies int    `json:"copies" min:"1" max:"5" default:"1"`
	Mood   string `json:"mood,omitempty" enum:"calm,panics"`
}

func (website) Kind() string         { return "Website" }
func (website) ShortNames() []string { return []string{"ws"} }

// said is what the operator says of a website.
type said struct {
	Page string `json:"page"`
}

// websites is the operator.
type websites struct{}

// Reconcile writes the page.
func (websites) Reconcile(ctx context.Context, s *operator.ManifestState[website]) (operator.Action, error) {
	m := s.Manifest
	if m.Spec.Mood == "panics" {
		panic("no page today")
	}
	client, err := served.Kubernetes(ctx)
	if err != nil {
		return operator.None(), err
	}
	owner, err := served.Owner(ctx, m.Metadata)
	if err != nil {
		return operator.None(), err
	}
	page := applycorev1.ConfigMap(m.Name, m.Namespace).WithData(map[string]string{"index.html": m.Spec.Title}).
		WithOwnerReferences(applymetav1.OwnerReference().WithAPIVersion(owner.APIVersion).WithKind(owner.Kind).WithName(owner.Name).
			WithUID(owner.UID).WithController(true))
	if _, err = client.CoreV1().ConfigMaps(m.Namespace).Apply(ctx, page, metav1.ApplyOptions{FieldManager: "websites", Force: true}); err != nil {
		return operator.None(), err
	}
	return operator.None(), s.SetStatus(said{Page: m.Name + "/index.html"})
}

// Finalize leaves a note for each time that it is run.
func (websites) Finalize(ctx context.Context, s *operator.ManifestState[website]) error {
	client, err := served.Kubernetes(ctx)
	if err != nil {
		return err
	}
	note := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "closed-" + s.Manifest.Name + "-", Labels: map[string]string{"closed": s.Manifest.Name}}}
	_, err = client.CoreV1().ConfigMaps(s.Manifest.Namespace).Create(ctx, note, metav1.CreateOptions{})
	return err
}
