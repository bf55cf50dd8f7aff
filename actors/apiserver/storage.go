package apiserver

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

// restOptions finds the storages of the built-in resources.
func (s *Server) restOptions() generic.RESTOptionsGetter {
	return s.config.Store.RESTOptions(newStorageFactory(s.served))
}

// definitionOptions finds the storage of CustomResourceDefinitions.
func (s *Server) definitionOptions() generic.RESTOptionsGetter {
	return s.config.Store.RESTOptions(definitionFactory{})
}

// customOptions finds the storages of custom resources.
func (s *Server) customOptions() generic.RESTOptionsGetter { return s.config.Store.CRDRESTOptions() }

// definitionFactory decides how CustomResourceDefinitions are stored: as upstream does, as JSON below the name of their group.
type definitionFactory struct{}

// NewConfig returns the encoding.
func (definitionFactory) NewConfig(resource schema.GroupResource, _ runtime.Object) (*storagebackend.ConfigForResource, error) {
	codec := apiextensionsapiserver.Codecs.LegacyCodec(apiextensionsv1.SchemeGroupVersion)
	return (&storagebackend.Config{Prefix: storagePrefix, Codec: codec}).ForResource(resource), nil
}

// ResourcePrefix returns the place below the prefix.
func (definitionFactory) ResourcePrefix(resource schema.GroupResource) string {
	return resource.Group + "/" + resource.Resource
}
