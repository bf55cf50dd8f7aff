package apiserver

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
)

// crdsKnownSignal is upstream's name for the signal that every stored CustomResourceDefinition has been read.
const crdsKnownSignal = "CRDInformerHasNotSynced"

// newCustomResources returns the server of CustomResourceDefinitions and of what they define.
func (s *Server) newCustomResources(config genericapiserver.Config) (*apiextensionsapiserver.CustomResourceDefinitions, error) {
	served := serverstorage.NewResourceConfig()
	served.EnableVersions(apiextensionsv1.SchemeGroupVersion)
	config.MergedResourceConfig = served
	config.RESTOptionsGetter = s.definitionOptions()
	config.PostStartHooks = map[string]genericapiserver.PostStartHookConfigEntry{}
	config.EnableIndex = false
	crds := apiextensionsapiserver.Config{
		GenericConfig: &genericapiserver.RecommendedConfig{Config: config},
		ExtraConfig: apiextensionsapiserver.ExtraConfig{
			CRDRESTOptionsGetter: s.customOptions(),
			MasterCount:          1,
			ServiceResolver:      clusterServices{s.client},
			AuthResolverWrapper:  s.webhookAuth(),
		},
	}
	return crds.Complete().New(genericapiserver.NewEmptyDelegateWithCustomHandler(s.notFound()))
}

// crdsKnown is closed when every stored CustomResourceDefinition has been read.
func (s *Server) crdsKnown() <-chan struct{} {
	return s.crds.GenericAPIServer.MuxAndDiscoveryCompleteSignals()[crdsKnownSignal]
}
