package apiserver

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

// Backend is what the server needs of the store.
type Backend interface {
	Decorator() generic.StorageDecorator
}

// optionsFunc finds the storage of a resource.
type optionsFunc func(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error)

// GetRESTOptions finds the storage of the resource.
func (f optionsFunc) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	return f(resource, example)
}

func (s *Server) restOptionsFor(config *storagebackend.ConfigForResource, prefix string) generic.RESTOptions {
	return generic.RESTOptions{
		StorageConfig:           config,
		Decorator:               s.config.Store.Decorator(),
		EnableGarbageCollection: true,
		DeleteCollectionWorkers: deleteCollectionWorkers,
		ResourcePrefix:          prefix,
	}
}

// restOptions finds the storages of the built-in resources.
func (s *Server) restOptions() generic.RESTOptionsGetter {
	factory := newStorageFactory(s.served)
	return optionsFunc(func(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
		config, err := factory.NewConfig(resource, example)
		if err != nil {
			return generic.RESTOptions{}, err
		}
		return s.restOptionsFor(config, factory.ResourcePrefix(resource)), nil
	})
}

// definitionOptions finds the storage of CustomResourceDefinitions.
func (s *Server) definitionOptions() generic.RESTOptionsGetter {
	return s.groupedOptions(apiextensionsapiserver.Codecs.LegacyCodec(apiextensionsv1.SchemeGroupVersion))
}

// customOptions finds the storages of custom resources. They are stored as JSON: nobody knows their types.
func (s *Server) customOptions() generic.RESTOptionsGetter {
	return s.groupedOptions(unstructured.UnstructuredJSONScheme)
}

// groupedOptions finds storages below the name of the group.
func (s *Server) groupedOptions(codec runtime.Codec) generic.RESTOptionsGetter {
	return optionsFunc(func(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
		config := storagebackend.Config{Prefix: storagePrefix, Codec: codec}
		return s.restOptionsFor(config.ForResource(resource), resource.Group+"/"+resource.Resource), nil
	})
}
