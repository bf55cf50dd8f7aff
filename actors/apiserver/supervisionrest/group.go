package supervisionrest

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	api "github.com/nodeactor/nodeactor/actors/apiserver/supervisionapi"
)

// Scheme knows the kinds, and what requests and answers need beside them.
var Scheme = newScheme()

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	must(api.AddToScheme(s))
	must(s.SetVersionPriority(api.GroupVersion))
	must(s.AddFieldLabelConversionFunc(api.GroupVersion.WithKind("Actor"), selectable(actors{}.fields(&api.Actor{}))))
	must(s.AddFieldLabelConversionFunc(api.GroupVersion.WithKind("FaultPolicy"), selectable(policies{}.fields(&api.FaultPolicy{}))))
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	return s
}

// must ends the process at its start when the declarations above contradict each other.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func sortedKeys(set fields.Set) []string { return slices.Sorted(maps.Keys(set)) }

// text serializes as JSON and YAML: the kinds have no protobuf form, as custom resources have none.
type text struct{ serializer.CodecFactory }

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (t text) SupportedMediaTypes() []runtime.SerializerInfo {
	return slices.DeleteFunc(slices.Clone(t.CodecFactory.SupportedMediaTypes()), func(i runtime.SerializerInfo) bool {
		return i.MediaType == runtime.ContentTypeProtobuf
	})
}

// Group assembles the API group over a tree. Its storages have to be destroyed.
func Group(tree Tree) *genericapiserver.APIGroupInfo {
	feed := newFeed(tree)
	codecs := serializer.NewCodecFactory(Scheme, serializer.WithStreamingCollectionEncodingToJSON())
	return &genericapiserver.APIGroupInfo{
		PrioritizedVersions:    []schema.GroupVersion{api.GroupVersion},
		OptionsExternalVersion: &schema.GroupVersion{Version: "v1"},
		Scheme:                 Scheme,
		ParameterCodec:         runtime.NewParameterCodec(Scheme),
		NegotiatedSerializer:   text{codecs},
		VersionedResourcesStorageMap: map[string]map[string]rest.Storage{api.GroupVersion.Version: {
			api.Actors:        &storage{source: actors{tree}, tree: tree, feed: feed},
			api.FaultPolicies: &storage{source: policies{tree}, tree: tree, feed: feed},
		}},
	}
}
