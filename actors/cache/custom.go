package cache

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Definitions is the kind of CustomResourceDefinitions. Its objects are not typed here.
var Definitions = Custom(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, "CustomResourceDefinition", cluster)

// Custom is a kind outside the table, as custom resources are: it can be followed, named and looked for, but not read typed.
func Custom(resource schema.GroupVersionResource, name string, namespaced bool) Kind {
	return Kind{Resource: resource, Name: name, Folder: resource.Group + "/" + resource.Resource, Namespaced: namespaced}
}

// byResource finds the kinds of the table by the name of their resource.
var byResource = indexResources(rows)

func indexResources(rows []typedKind) map[schema.GroupResource]Kind {
	kinds := map[schema.GroupResource]Kind{}
	for _, r := range rows {
		kinds[r.kind.Resource.GroupResource()] = r.kind
	}
	return kinds
}

// KindServing is the kind of a resource: of the table, or a custom one, whose scope is not known then.
func KindServing(resource schema.GroupResource, namespaced bool) Kind {
	if kind, ok := byResource[resource]; ok {
		return kind
	}
	return Custom(resource.WithVersion(""), "", namespaced)
}

// Record reads the newest stored version of an object of any kind.
func (c *Cache) Record(kind Kind, namespace, name string) (Record, bool) {
	return c.source.Get(kind.Key(namespace, name))
}

// Served tells whether the API serves a kind: it is in the table, or its definition is established and serves its version.
func (c *Cache) Served(kind Kind) bool {
	if _, builtIn := byResource[kind.Resource.GroupResource()]; builtIn || kind == (Kind{}) || kind == Definitions {
		return true
	}
	record, ok := c.Record(Definitions, "", kind.Resource.Resource+"."+kind.Resource.Group)
	return ok && serves(record.Value, kind.Resource.Version)
}

// definition is what has to be known of a CustomResourceDefinition.
type definition struct {
	Spec struct {
		Versions []struct {
			Name   string `json:"name"`
			Served bool   `json:"served"`
		} `json:"versions"`
	} `json:"spec"`
	Status struct {
		Conditions []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
	} `json:"status"`
}

func serves(value []byte, version string) bool {
	var d definition
	if json.Unmarshal(value, &d) != nil {
		return false
	}
	established, served := false, false
	for _, c := range d.Status.Conditions {
		established = established || c.Type == "Established" && c.Status == "True"
	}
	for _, v := range d.Spec.Versions {
		served = served || v.Served && v.Name == version
	}
	return established && served
}
