package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/registry/generic"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/cache"

	"github.com/nodeactor/nodeactor/store/adapter"
	"github.com/nodeactor/nodeactor/store/index"
)

const (
	// keyPrefix is the root of all keys, as upstream.
	keyPrefix = "/registry"
	// deleteWorkers is how many objects of a collection are deleted at once.
	deleteWorkers = 4
)

// Factory chooses how each resource is stored: codec, storage version and key prefix. The API machinery's storage factory is one.
type Factory interface {
	NewConfig(resource schema.GroupResource, example runtime.Object) (*storagebackend.ConfigForResource, error)
	ResourcePrefix(resource schema.GroupResource) string
}

var _ Factory = serverstorage.StorageFactory(nil)

// RESTOptions returns the options with which generic registries keep their resources in this store, as f says.
func (s *Store) RESTOptions(f Factory) generic.RESTOptionsGetter { return &restOptions{s, f} }

// CRDRESTOptions returns the options for custom resources: JSON, below their group, and the codec chosen by whoever serves them.
func (s *Store) CRDRESTOptions() generic.RESTOptionsGetter { return &restOptions{s, customFactory{}} }

// restOptions is a generic.RESTOptionsGetter.
type restOptions struct {
	store   *Store
	factory Factory
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (o *restOptions) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	cfg, err := o.factory.NewConfig(resource, example)
	if err != nil {
		return generic.RESTOptions{}, fmt.Errorf("cannot store %s: %w", resource, err)
	}
	cfg.Prefix = keyPrefix
	if e := o.store.cfg.Encryption; e != nil {
		cfg.Transformer = e.TransformerForResource(resource)
		o.store.sealers.Store(index.DirOf(keyPrefix+"/"+strings.Trim(o.factory.ResourcePrefix(resource), "/")+"/"), resource)
	}
	return generic.RESTOptions{
		StorageConfig:           cfg,
		Decorator:               o.store.decorate,
		EnableGarbageCollection: true,
		DeleteCollectionWorkers: deleteWorkers,
		ResourcePrefix:          strings.Trim(o.factory.ResourcePrefix(resource), "/"),
	}, nil
}

// decorate is the generic.StorageDecorator of this store.
func (s *Store) decorate(cfg *storagebackend.ConfigForResource, resourcePrefix string, _ func(runtime.Object) (string, error),
	newFunc, newListFunc func() runtime.Object, _ storage.AttrFunc, _ storage.IndexerFuncs, _ *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	if newFunc == nil || cfg.Codec == nil {
		return nil, nil, errors.New("cannot store resource: it has no codec or no function for new objects")
	}
	st, err := adapter.New(s.Backend(), adapter.Config{
		Prefix:         cfg.Prefix,
		ResourcePrefix: "/" + strings.Trim(resourcePrefix, "/"),
		GroupResource:  cfg.GroupResource,
		Codec:          cfg.Codec,
		Transformer:    cfg.Transformer,
		NewFunc:        newFunc,
		NewListFunc:    newListFunc,
		MarkCorrupt:    utilfeature.DefaultFeatureGate.Enabled(features.AllowUnsafeMalformedObjectDeletion),
	})
	if err != nil {
		return nil, nil, err
	}
	return st, func() {}, nil
}

// Backend is what storage adapters stand on.
func (s *Store) Backend() adapter.Backend {
	return adapter.Backend{
		Engine:          s.host,
		Index:           s.index,
		Clock:           s.cfg.Clock,
		Lease:           s.Lease,
		CompactRevision: s.CompactRevision,
		Go:              func(name string, f func(context.Context) error) bool { return s.group.Go(name, f, nil) },
	}
}

// customFactory stores custom resources the way upstream does.
type customFactory struct{}

// NewConfig implements Factory.
func (customFactory) NewConfig(resource schema.GroupResource, _ runtime.Object) (*storagebackend.ConfigForResource, error) {
	return storagebackend.NewDefaultConfig(keyPrefix, unstructured.UnstructuredJSONScheme).ForResource(resource), nil
}

// ResourcePrefix implements Factory.
func (customFactory) ResourcePrefix(resource schema.GroupResource) string {
	return resource.Group + "/" + resource.Resource
}
