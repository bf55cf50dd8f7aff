package replicagroup

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/nodeactor/nodeactor/actors/cache"
)

// GroupVersion is where the kinds are served.
var GroupVersion = schema.GroupVersion{Group: "apps.nodeactor.io", Version: "v1alpha1"}

// The kinds.
var (
	Kind     = cache.Custom(GroupVersion.WithResource("replicagroups"), "ReplicaGroup", true)
	SizeKind = cache.Custom(GroupVersion.WithResource("sizeclasses"), "SizeClass", false)
)

// definitionsPath is where CustomResourceDefinitions are.
const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"

//go:embed definitions.yaml
var definitionsText []byte

// definition is a CustomResourceDefinition in JSON.
type definition struct {
	name string
	json []byte
}

// definitions gives the definitions of the kinds.
func definitions() ([]definition, error) {
	var all []definition
	for _, document := range bytes.Split(definitionsText, []byte("\n---\n")) {
		text, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return nil, fmt.Errorf("cannot read the definition of a kind: %w", err)
		}
		var head metav1.PartialObjectMetadata
		if err := yaml.Unmarshal(text, &head); err != nil {
			return nil, fmt.Errorf("cannot read the definition of a kind: %w", err)
		}
		all = append(all, definition{head.Name, text})
	}
	return all, nil
}

// Define makes the API serve the kinds, or serve them as this version has them. Where they are served so already nothing is written. What
// somebody else has added to a definition stays.
func Define(ctx context.Context, client rest.Interface) error {
	all, err := definitions()
	if err != nil {
		return err
	}
	for _, d := range all {
		err := client.Patch(types.ApplyPatchType).AbsPath(definitionsPath+d.name).
			Param("fieldManager", "nodeactor").Param("force", "true").Body(d.json).Do(ctx).Error()
		if err != nil {
			return fmt.Errorf("cannot define %s: %w", d.name, err)
		}
	}
	return nil
}
