package served

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/operator"
)

// Defaults of a kind that says nothing of itself.
const (
	DefaultGroup   = "operators.nodeactor.io"
	DefaultVersion = "v1"
)

// Resource is how the API names a kind.
type Resource struct {
	Group, Version, Kind string
	// Plural and Singular are the names in paths and on the command line, ShortNames further ones for the latter.
	Plural, Singular string
	ShortNames       []string
	Namespaced       bool
}

// resourceOf asks a specification how its kind is to be named.
func resourceOf(spec operator.Specification) (Resource, error) {
	r := Resource{Group: DefaultGroup, Version: DefaultVersion, Kind: spec.Kind(), Namespaced: true}
	if s, ok := spec.(interface{ APIGroup() string }); ok {
		r.Group = s.APIGroup()
	}
	if s, ok := spec.(interface{ APIVersion() string }); ok {
		r.Version = s.APIVersion()
	}
	if s, ok := spec.(interface{ ShortNames() []string }); ok {
		r.ShortNames = s.ShortNames()
	}
	if s, ok := spec.(interface{ ClusterScoped() bool }); ok {
		r.Namespaced = !s.ClusterScoped()
	}
	plural, singular := meta.UnsafeGuessKindToResource(r.groupVersionKind())
	r.Plural, r.Singular = plural.Resource, singular.Resource
	if s, ok := spec.(interface{ Plural() string }); ok {
		r.Plural = s.Plural()
	}
	return r, r.check()
}

// check refuses what the API would refuse, and groups that are not for others to add to.
func (r Resource) check() error {
	switch {
	case len(validation.IsDNS1123Subdomain(r.Group)) > 0 || !strings.Contains(r.Group, "."):
		return fmt.Errorf("cannot serve kind %s: its group %q is no domain such as %s", r.Kind, r.Group, DefaultGroup)
	case strings.HasSuffix(r.Group, ".k8s.io") || strings.HasSuffix(r.Group, ".kubernetes.io"):
		return fmt.Errorf("cannot serve kind %s: its group %q is Kubernetes' own; choose a domain of yours", r.Kind, r.Group)
	}
	return nil
}

// name is that of the definition.
func (r Resource) name() string { return r.Plural + "." + r.Group }

func (r Resource) groupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

func (r Resource) groupVersionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Plural}
}

// cached is the kind as the cache knows it.
func (r Resource) cached() cache.Kind {
	return cache.Custom(r.groupVersionResource(), r.Kind, r.Namespaced)
}
