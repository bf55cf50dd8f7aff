// Package kinds says how the built-in resources are stored: in protobuf, in upstream's storage versions, under upstream's keys.
package kinds

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	serveroptions "k8s.io/apiserver/pkg/server/options"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/kubernetes/pkg/kubeapiserver"
)

// keyPrefix is the root of all keys, as upstream.
const keyPrefix = "/registry"

// Factory returns the storage factory of the built-in resources, for store.RESTOptions. resources are the versions that are served;
// their packages must be installed in the legacy scheme before any storage is made.
func Factory(resources *serverstorage.ResourceConfig) (*serverstorage.DefaultStorageFactory, error) {
	etcd := serveroptions.NewEtcdOptions(storagebackend.NewDefaultConfig(keyPrefix, nil))
	etcd.DefaultStorageMediaType = runtime.ContentTypeProtobuf
	cfg := kubeapiserver.NewStorageFactoryConfig()
	cfg.APIResourceConfig = resources
	f, err := cfg.Complete(etcd).New()
	if err != nil {
		return nil, fmt.Errorf("cannot decide how resources are stored: %w", err)
	}
	return f, nil
}
