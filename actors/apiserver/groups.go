package apiserver

import (
	"fmt"

	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/client-go/kubernetes"
	admissionregistrationrest "k8s.io/kubernetes/pkg/registry/admissionregistration/rest"
	appsrest "k8s.io/kubernetes/pkg/registry/apps/rest"
	authenticationrest "k8s.io/kubernetes/pkg/registry/authentication/rest"
	authorizationrest "k8s.io/kubernetes/pkg/registry/authorization/rest"
	autoscalingrest "k8s.io/kubernetes/pkg/registry/autoscaling/rest"
	batchrest "k8s.io/kubernetes/pkg/registry/batch/rest"
	certificatesrest "k8s.io/kubernetes/pkg/registry/certificates/rest"
	coordinationrest "k8s.io/kubernetes/pkg/registry/coordination/rest"
	discoveryrest "k8s.io/kubernetes/pkg/registry/discovery/rest"
	eventsrest "k8s.io/kubernetes/pkg/registry/events/rest"
	flowcontrolrest "k8s.io/kubernetes/pkg/registry/flowcontrol/rest"
	networkingrest "k8s.io/kubernetes/pkg/registry/networking/rest"
	noderest "k8s.io/kubernetes/pkg/registry/node/rest"
	policyrest "k8s.io/kubernetes/pkg/registry/policy/rest"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	resourcerest "k8s.io/kubernetes/pkg/registry/resource/rest"
	schedulingrest "k8s.io/kubernetes/pkg/registry/scheduling/rest"
	storagerest "k8s.io/kubernetes/pkg/registry/storage/rest"
	storagemigrationrest "k8s.io/kubernetes/pkg/registry/storagemigration/rest"
)

// provider assembles the storages of one group.
type provider interface {
	GroupName() string
	NewRESTStorage(serverstorage.APIResourceConfigSource, generic.RESTOptionsGetter) (genericapiserver.APIGroupInfo, error)
}

// providers returns the named groups. Their order is the order in discovery: a client that asks for a resource by its bare name gets the
// first group that has it.
func (s *Server) providers(client kubernetes.Interface) []provider {
	return []provider{
		authenticationrest.RESTStorageProvider{Authenticator: s.authenticator, APIAudiences: audiences},
		authorizationrest.RESTStorageProvider{Authorizer: s.authorizer, RuleResolver: s.rules},
		autoscalingrest.RESTStorageProvider{},
		batchrest.RESTStorageProvider{},
		certificatesrest.RESTStorageProvider{Authorizer: s.authorizer},
		coordinationrest.RESTStorageProvider{},
		discoveryrest.StorageProvider{},
		networkingrest.RESTStorageProvider{},
		noderest.RESTStorageProvider{},
		policyrest.RESTStorageProvider{},
		rbacrest.RESTStorageProvider{Authorizer: s.authorizer},
		schedulingrest.RESTStorageProvider{},
		storagerest.RESTStorageProvider{},
		storagemigrationrest.RESTStorageProvider{},
		flowcontrolrest.RESTStorageProvider{InformerFactory: s.informers},
		appsrest.StorageProvider{},
		admissionregistrationrest.RESTStorageProvider{Authorizer: s.authorizer, DiscoveryClient: client.Discovery()},
		eventsrest.RESTStorageProvider{TTL: eventLife},
		resourcerest.RESTStorageProvider{NamespaceClient: client.CoreV1().Namespaces(), Authorizer: s.authorizer},
	}
}

// namedGroups assembles every group but core.
func (s *Server) namedGroups(client kubernetes.Interface) ([]*genericapiserver.APIGroupInfo, error) {
	var groups []*genericapiserver.APIGroupInfo
	for _, p := range s.providers(client) {
		info, err := p.NewRESTStorage(s.served, s.options)
		if err != nil {
			return nil, fmt.Errorf("cannot assemble API group %s: %w", p.GroupName(), err)
		}
		if len(info.VersionedResourcesStorageMap) > 0 {
			keepServedVersions(&info)
			groups = append(groups, &info)
		}
	}
	return groups, nil
}

// keepServedVersions drops the versions that the scheme knows and we do not serve, so that discovery prefers one that exists.
func keepServedVersions(info *genericapiserver.APIGroupInfo) {
	kept := info.PrioritizedVersions[:0:0]
	for _, version := range info.PrioritizedVersions {
		if len(info.VersionedResourcesStorageMap[version.Version]) > 0 {
			kept = append(kept, version)
		}
	}
	info.PrioritizedVersions = kept
}
