package served

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
)

// ConditionServed is the condition of a definition that says whether the operator of its kind runs. It appears when it does not.
const ConditionServed = "OperatorServed"

// Reasons of ConditionServed.
const (
	// ReasonOtherOwner: the definition was made by somebody else, and its operator leaves it alone.
	ReasonOtherOwner = "DefinitionOfAnotherOwner"
	// ReasonServed: the operator runs after all.
	ReasonServed = "Served"
)

// component is who Events about definitions come from.
const component = "nodeactor-operators"

// definer makes the kind of an operator known to the API.
type definer struct {
	operator *Operator
	client   dynamic.Interface
	deps     Deps
	// told is what was last said of a definition of somebody else's.
	told string
}

func (d *definer) definitions() dynamic.ResourceInterface {
	return d.client.Resource(cache.Definitions.Resource)
}

// run applies the definition, unless there is one of somebody else's.
func (d *definer) run(ctx context.Context) error {
	name := d.operator.resource.name()
	present, err := d.definitions().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return d.apply(ctx)
	case err != nil:
		return fmt.Errorf("cannot read definition %s: %w", name, err)
	case present.GetLabels()[managedBy] != ManagedBy:
		return d.refuse(ctx, present)
	}
	if err := d.apply(ctx); err != nil {
		return err
	}
	return d.acquit(ctx, present)
}

func (d *definer) apply(ctx context.Context) error {
	object, err := asApplied(d.operator.definition)
	if err != nil {
		return err
	}
	_, err = d.definitions().Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if err != nil {
		return fmt.Errorf("cannot define kind %s: %w", d.operator.Kind(), err)
	}
	return nil
}

// asApplied is a definition without the fields that are the API's.
func asApplied(crd *apiextensionsv1.CustomResourceDefinition) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(crd)
	if err != nil {
		return nil, fmt.Errorf("cannot encode definition %s: %w", crd.Name, err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(text); err != nil {
		return nil, fmt.Errorf("cannot encode definition %s: %w", crd.Name, err)
	}
	unstructured.RemoveNestedField(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	return object, nil
}

// refuse says on a definition of somebody else's why the operator does not run.
func (d *definer) refuse(ctx context.Context, present *unstructured.Unstructured) error {
	name := present.GetName()
	err := fmt.Errorf("cannot define kind %s: definition %s was not made by an operator; to give it to this one: kubectl label crd %s %s=%s; or delete it, and its objects with it: %w",
		d.operator.Kind(), name, name, managedBy, ManagedBy, kube.ErrDefinitionTaken)
	if message := err.Error(); d.told != message {
		d.deps.Events.For(component).Event(referenceTo(present), corev1.EventTypeWarning, ReasonOtherOwner, message)
		d.told = message
	}
	if said := d.say(ctx, present, metav1.ConditionFalse, ReasonOtherOwner, err.Error()); said != nil {
		return said
	}
	return err
}

// acquit takes back what was said of a definition that is the operator's now.
func (d *definer) acquit(ctx context.Context, present *unstructured.Unstructured) error {
	if conditionOf(present) == "" {
		return nil
	}
	return d.say(ctx, present, metav1.ConditionTrue, ReasonServed, "the operator of its kind runs")
}

// say puts the condition on a definition, if it does not say so yet.
func (d *definer) say(ctx context.Context, present *unstructured.Unstructured, status metav1.ConditionStatus, reason, message string) error {
	if conditionOf(present) == string(status)+reason {
		return nil
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": present.GetAPIVersion(), "kind": present.GetKind(),
		"metadata": map[string]any{"name": present.GetName(), "uid": string(present.GetUID())},
		"status": map[string]any{"conditions": []any{map[string]any{
			"type": ConditionServed, "status": string(status), "reason": reason, "message": message,
			"lastTransitionTime": d.deps.Clock.Now().UTC().Format(time.RFC3339),
		}}},
	}}
	_, err := d.definitions().ApplyStatus(ctx, present.GetName(), object, metav1.ApplyOptions{FieldManager: component, Force: true})
	if err != nil {
		return fmt.Errorf("cannot say on definition %s whether its operator runs: %w", present.GetName(), err)
	}
	return nil
}

// conditionOf is what a definition says of its operator now, status and reason; empty when nothing.
func conditionOf(present *unstructured.Unstructured) string {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(present.Object, crd) != nil {
		return ""
	}
	for _, c := range crd.Status.Conditions {
		if c.Type == ConditionServed {
			return string(c.Status) + c.Reason
		}
	}
	return ""
}

// referenceTo names a definition in an Event.
func referenceTo(present *unstructured.Unstructured) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: present.GetAPIVersion(), Kind: present.GetKind(), Name: present.GetName(), UID: present.GetUID(),
	}
}
