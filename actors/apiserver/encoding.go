package apiserver

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/apps"
	"k8s.io/kubernetes/pkg/apis/certificates"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/events"
	"k8s.io/kubernetes/pkg/apis/networking"
	"k8s.io/kubernetes/pkg/apis/storagemigration"
)

// storedElsewhere lists the resources that upstream keeps under another name than their own.
var storedElsewhere = map[schema.GroupResource]string{
	api.Resource("replicationcontrollers"): "controllers",
	api.Resource("endpoints"):              "services/endpoints",
	api.Resource("nodes"):                  "minions",
	api.Resource("services"):               "services/specs",
	networking.Resource("ingresses"):       "ingress",
}

// storedInOlderVersion lists the resources that this release stores in another version than the one it serves, so that the release before
// can still read them.
var storedInOlderVersion = []schema.GroupVersionResource{
	certificates.Resource("clustertrustbundles").WithVersion("v1beta1"),
	certificates.Resource("podcertificaterequests").WithVersion("v1beta1"),
	storagemigration.Resource("storageversionmigrations").WithVersion("v1beta1"),
}

// newStorageFactory returns what decides under which name, in which version and in which encoding a built-in object is stored: all three as
// upstream does it, so that the store can be read by upstream's tools. The encoding is protobuf.
func newStorageFactory(served *serverstorage.ResourceConfig) *serverstorage.DefaultStorageFactory {
	encoding := serverstorage.NewDefaultResourceEncodingConfig(legacyscheme.Scheme)
	for _, gvr := range storedInOlderVersion {
		encoding.SetResourceEncoding(gvr.GroupResource(), gvr.GroupVersion(), schema.GroupVersion{Group: gvr.Group, Version: runtime.APIVersionInternal})
	}
	factory := serverstorage.NewDefaultStorageFactory(storagebackend.Config{Prefix: storagePrefix}, runtime.ContentTypeProtobuf,
		legacyscheme.Codecs, encoding, served, storedElsewhere)
	factory.AddCohabitatingResources(api.Resource("events"), events.Resource("events"))
	factory.AddCohabitatingResources(api.Resource("replicationcontrollers"), schema.GroupResource{Group: "extensions", Resource: "replicationcontrollers"})
	factory.AddCohabitatingResources(apps.Resource("deployments"), schema.GroupResource{Group: "extensions", Resource: "deployments"})
	return factory
}
