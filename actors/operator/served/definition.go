package served

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apivalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeactor/nodeactor/actors/operator/schema"
)

// Whose a definition is.
const (
	managedBy = "app.kubernetes.io/managed-by"
	// ManagedBy is the value of the label app.kubernetes.io/managed-by of definitions that operators made.
	ManagedBy = "nodeactor"
	// manager is the field manager that applies definitions.
	manager = "nodeactor-operators"
)

// ErrDefinition is returned when the API would refuse the definition of a kind; the text says why.
var ErrDefinition = errors.New("the API would not take the definition")

// define makes the definition of a kind, and the schema of its objects for reading what is stored. Whatever the API would refuse of it is
// refused here.
func define(r Resource, spec reflect.Type) (*apiextensionsv1.CustomResourceDefinition, *structural.Structural, error) {
	props, err := objectSchema(r, spec)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot serve kind %s: %w", r.Kind, err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: r.name(), Labels: map[string]string{managedBy: ManagedBy}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: r.Group, Scope: r.scope(),
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: r.Plural, Singular: r.Singular, Kind: r.Kind, ListKind: r.Kind + "List", ShortNames: r.ShortNames,
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: r.Version, Served: true, Storage: true,
				Schema:                   &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: props},
				Subresources:             &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				AdditionalPrinterColumns: columns(),
			}},
		},
	}
	tree, err := checkDefinition(crd)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot serve kind %s: %w: %w", r.Kind, ErrDefinition, err)
	}
	return crd, tree, nil
}

func (r Resource) scope() apiextensionsv1.ResourceScope {
	if r.Namespaced {
		return apiextensionsv1.NamespaceScoped
	}
	return apiextensionsv1.ClusterScoped
}

// columns are what kubectl get shows beside the name.
func columns() []apiextensionsv1.CustomResourceColumnDefinition {
	return []apiextensionsv1.CustomResourceColumnDefinition{
		{Name: "Phase", Type: "string", JSONPath: ".status.phase"},
		{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"},
		{Name: "Error", Type: "string", JSONPath: ".status.lastError"},
	}
}

// objectSchema is the schema of whole objects. An object without status is Pending for whoever reads it.
func objectSchema(r Resource, spec reflect.Type) (*apiextensionsv1.JSONSchemaProps, error) {
	wanted, err := schema.Of(spec)
	if err != nil {
		return nil, err
	}
	state, err := schema.For[status]()
	if err != nil {
		return nil, err
	}
	state.Default = json.RawMessage(`{"phase":"Pending"}`)
	whole := &schema.Schema{
		Type: "object", Description: fmt.Sprintf("%s is reconciled by an operator of this node.", r.Kind),
		Properties: map[string]*schema.Schema{"spec": wanted, "status": state},
	}
	if len(wanted.Required) > 0 {
		whole.Required = []string{"spec"}
	}
	text, err := json.Marshal(whole)
	if err != nil {
		return nil, err
	}
	props := &apiextensionsv1.JSONSchemaProps{}
	return props, json.Unmarshal(text, props)
}

// checkDefinition does what the API does to a new definition, and gives the tree of its schema.
func checkDefinition(crd *apiextensionsv1.CustomResourceDefinition) (*structural.Structural, error) {
	filled, internal := crd.DeepCopy(), &apiextensions.CustomResourceDefinition{}
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(filled)
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(filled, internal, nil); err != nil {
		return nil, err
	}
	internal.Status.StoredVersions = []string{crd.Spec.Versions[0].Name}
	if errs := apivalidation.ValidateCustomResourceDefinition(context.Background(), internal); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	validation := internal.Spec.Validation
	if validation == nil {
		validation = internal.Spec.Versions[0].Schema
	}
	return structural.NewStructural(validation.OpenAPIV3Schema)
}
