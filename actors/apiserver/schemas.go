package apiserver

import (
	"sync"

	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	apiextensionsopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/endpoints"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/openapi"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/spec3"
	openapiutil "k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/nodeactor/nodeactor/actors/apiserver/supervisionrest"
)

// openAPIConfigs say how documents are named and where their definitions come from. Naming takes a walk over every known type, so it is done
// once, when the first document or schema is needed.
type openAPIConfigs struct {
	v2 *common.Config
	v3 *common.OpenAPIV3Config
}

var builtinOpenAPI = sync.OnceValue(func() openAPIConfigs {
	definitions := openapi.GetOpenAPIDefinitionsWithoutDisabledFeatures(openAPIDefinitions)
	namer := openapinamer.NewDefinitionNamer(legacyscheme.Scheme, apiextensionsapiserver.Scheme, supervisionrest.Scheme)
	v2 := genericapiserver.DefaultOpenAPIConfig(definitions, namer)
	v2.Info.Title, v2.Info.Version, v2.Definitions = "Kubernetes", KubernetesVersion, nil
	return openAPIConfigs{v2: v2, v3: openAPIV3Config(definitions, namer)}
})

// definitionOpenAPI is the part that the server of CustomResourceDefinitions needs when it is assembled.
func definitionOpenAPI() *common.OpenAPIV3Config {
	namer := openapinamer.NewDefinitionNamer(apiextensionsapiserver.Scheme)
	return openAPIV3Config(openapi.GetOpenAPIDefinitionsWithoutDisabledFeatures(apiextensionsopenapi.GetOpenAPIDefinitions), namer)
}

// openAPIV3Config is upstream's default, without the definitions it would keep: they are several megabytes, and made anew when needed.
func openAPIV3Config(definitions common.GetOpenAPIDefinitions, namer *openapinamer.DefinitionNamer) *common.OpenAPIV3Config {
	return &common.OpenAPIV3Config{
		Info:                  &spec.Info{InfoProps: spec.InfoProps{Title: "Kubernetes", Version: KubernetesVersion}},
		DefaultResponse:       &spec3.Response{ResponseProps: spec3.ResponseProps{Description: "Default Response."}},
		GetOperationIDAndTags: openapinamer.GetOperationIDAndTags,
		GetDefinitionName:     namer.GetDefinitionName,
		GetDefinitions:        definitions,
	}
}

// lateConverter knows the fields of built-in types, for the bookkeeping of who set which. It is built in the background while the server is
// assembled; the first write waits for it.
type lateConverter struct {
	build func() (managedfields.TypeConverter, error) // once
}

// newLateConverter returns a converter for the types of the groups.
func newLateConverter(groups []*genericapiserver.APIGroupInfo) *lateConverter {
	return &lateConverter{build: sync.OnceValues(func() (managedfields.TypeConverter, error) {
		names, err := typeNames(groups)
		if err != nil {
			return nil, err
		}
		schemas, err := builder3.BuildOpenAPIDefinitionsForResources(builtinOpenAPI().v3, names...)
		if err != nil {
			return nil, err
		}
		return managedfields.NewTypeConverter(schemas, false)
	})}
}

// typeNames returns the names under which the types of the groups are defined.
func typeNames(groups []*genericapiserver.APIGroupInfo) ([]string, error) {
	var names []string
	for _, group := range groups {
		for _, gv := range group.PrioritizedVersions {
			for _, storage := range group.VersionedResourcesStorageMap[gv.Version] {
				kind, err := endpoints.GetResourceKind(gv, storage, group.Scheme)
				if err != nil {
					return nil, err
				}
				sample, err := group.Scheme.New(kind)
				if err != nil {
					return nil, err
				}
				names = append(names, openapiutil.GetCanonicalTypeName(sample))
			}
		}
	}
	return names, nil
}

// ObjectToTyped tells the fields of the object.
func (l *lateConverter) ObjectToTyped(obj runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	converter, err := l.build()
	if err != nil {
		return nil, err
	}
	return converter.ObjectToTyped(obj, options...)
}

// TypedToObject is the way back.
func (l *lateConverter) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	converter, err := l.build()
	if err != nil {
		return nil, err
	}
	return converter.TypedToObject(value)
}
