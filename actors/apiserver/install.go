package apiserver

import (
	"fmt"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/nodeactor/nodeactor/store/splice"
)

// installer adds groups to the generic server. The generic server would do it, but builds the schemas of all groups first; here they are built
// meanwhile.
type installer struct {
	server    *genericapiserver.GenericAPIServer
	config    *genericapiserver.Config
	converter managedfields.TypeConverter
	encodings *splice.Cache // of single objects, from which lists are put together; nil: none are kept
}

// installCore adds the group with the empty name, which lives under a path of its own.
func (i *installer) installCore(info *genericapiserver.APIGroupInfo) error {
	const prefix = genericapiserver.DefaultLegacyAPIPrefix
	if err := i.installResources(prefix, info, i.server.AggregatedLegacyDiscoveryGroupManager); err != nil {
		return err
	}
	root := discovery.NewLegacyRootAPIHandler(i.config.DiscoveryAddresses, i.server.Serializer, prefix)
	manager := i.server.AggregatedLegacyDiscoveryGroupManager
	wrapped := aggregated.WrapAggregatedDiscoveryToHandler(root, manager, manager)
	i.server.Handler.GoRestfulContainer.Add(wrapped.GenerateWebService(prefix, metav1.APIVersions{}))
	return nil
}

// installNamed adds a group with a name.
func (i *installer) installNamed(info *genericapiserver.APIGroupInfo) error {
	if err := i.installResources(genericapiserver.APIGroupPrefix, info, i.server.AggregatedDiscoveryGroupManager); err != nil {
		return err
	}
	var versions []string
	for _, version := range info.PrioritizedVersions {
		versions = append(versions, version.Version)
	}
	group := apiGroup(info.PrioritizedVersions[0].Group, versions)
	i.server.DiscoveryGroupManager.AddGroup(group)
	i.server.Handler.GoRestfulContainer.Add(discovery.NewAPIGroupHandler(i.server.Serializer, group).WebService())
	return nil
}

func (i *installer) installResources(prefix string, info *genericapiserver.APIGroupInfo, manager aggregated.ResourceManager) error {
	for _, gv := range info.PrioritizedVersions {
		resources, _, err := i.version(prefix, info, gv).InstallREST(i.server.Handler.GoRestfulContainer)
		if err != nil {
			return fmt.Errorf("cannot install %s: %w", gv, err)
		}
		manager.AddGroupVersion(gv.Group, apidiscoveryv2.APIVersionDiscovery{
			Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent,
			Version:   gv.Version,
			Resources: resources,
		})
	}
	i.server.RegisterDestroyFunc(func() {
		for _, resources := range info.VersionedResourcesStorageMap {
			for _, storage := range resources {
				storage.Destroy()
			}
		}
	})
	return nil
}

// version describes one version of a group to upstream's installer.
func (i *installer) version(prefix string, info *genericapiserver.APIGroupInfo, gv schema.GroupVersion) *endpoints.APIGroupVersion {
	return &endpoints.APIGroupVersion{
		Root:                        prefix,
		Storage:                     info.VersionedResourcesStorageMap[gv.Version],
		GroupVersion:                gv,
		AllServedVersionsByResource: servedByResource(info, gv.Group),
		OptionsExternalVersion:      info.OptionsExternalVersion,
		MetaGroupVersion:            info.MetaGroupVersion,
		ParameterCodec:              info.ParameterCodec,
		Serializer:                  i.serializer(info),
		Creater:                     reservingCreater{info.Scheme},
		Convertor:                   info.Scheme,
		ConvertabilityChecker:       info.Scheme,
		UnsafeConvertor:             runtime.UnsafeObjectConvertor(info.Scheme),
		Defaulter:                   info.Scheme,
		Typer:                       info.Scheme,
		Namer:                       runtime.Namer(meta.NewAccessor()),
		TypeConverter:               i.converter,
		EquivalentResourceRegistry:  i.server.EquivalentResourceRegistry,
		Authorizer:                  i.server.Authorizer,
		Admit:                       i.config.AdmissionControl,
		MinRequestTimeout:           minWatchTimeout,
		MaxRequestBodyBytes:         maxRequestBodyBytes,
	}
}

// serializer puts lists together from kept encodings, unless none are to be kept.
func (i *installer) serializer(info *genericapiserver.APIGroupInfo) runtime.NegotiatedSerializer {
	if i.encodings == nil {
		return info.NegotiatedSerializer
	}
	return splice.Wrap(info.NegotiatedSerializer, i.encodings)
}

// servedByResource returns in which versions each resource of the group is served.
func servedByResource(info *genericapiserver.APIGroupInfo, group string) map[string][]string {
	served := map[string][]string{}
	for version, resources := range info.VersionedResourcesStorageMap {
		for resource := range resources {
			served[resource] = append(served[resource], schema.GroupVersion{Group: group, Version: version}.String())
		}
	}
	return served
}
