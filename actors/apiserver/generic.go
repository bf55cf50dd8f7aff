package apiserver

import (
	"net/http"

	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/openapi"
	"k8s.io/client-go/dynamic"
	"k8s.io/component-base/tracing"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	generatedopenapi "k8s.io/kubernetes/pkg/generated/openapi"
)

// noTracing records nothing.
var noTracing = tracing.NewNoopTracerProvider()

// genericConfig returns what the built-in and the custom API have in common.
func (s *Server) genericConfig() (*genericapiserver.Config, error) {
	c := genericapiserver.NewConfig(legacyscheme.Codecs)
	c.EffectiveVersion = s.version
	c.LoopbackClientConfig = s.loopback
	c.TracerProvider = noTracing
	c.ExternalAddress = s.config.AdvertiseAddr
	c.MergedResourceConfig = s.served
	c.AggregatedDiscoveryGroupManager = aggregated.NewResourceManager("apis")
	c.LongRunningFunc = isLongRunning
	c.RequestTimeout = requestTimeout
	c.MinRequestTimeout = int(minWatchTimeout.Seconds())
	c.MaxRequestBodyBytes = maxRequestBodyBytes
	c.JSONPatchMaxCopyBytes = maxPatchCopyBytes
	c.EnableProfiling, c.EnableMetrics = false, false
	c.SkipOpenAPIInstallation = true
	c.Authentication.Authenticator = s.authenticator
	c.Authentication.APIAudiences = audiences
	c.Authentication.RequestHeaderConfig = s.credentials.frontProxy
	c.Authorization.Authorizer = s.authorizer
	c.RuleResolver = s.rules
	c.RequestInfoResolver = genericapiserver.NewRequestInfoResolver(c)
	c.BuildHandlerChainFunc = s.networkChain
	c.HealthzChecks, c.LivezChecks, c.ReadyzChecks = nil, nil, nil
	setOpenAPI(c)
	objects, err := dynamic.NewForConfig(s.dynamicConfig())
	if err != nil {
		return nil, err
	}
	c.AdmissionControl, err = s.newAdmission(s.client, objects, s.serviceResolver())
	return c, err
}

// setOpenAPI says how the documents are named and where their definitions come from.
func setOpenAPI(c *genericapiserver.Config) {
	definitions := openapi.GetOpenAPIDefinitionsWithoutDisabledFeatures(generatedopenapi.GetOpenAPIDefinitions)
	namer := openapinamer.NewDefinitionNamer(legacyscheme.Scheme, apiextensionsapiserver.Scheme)
	c.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(definitions, namer)
	c.OpenAPIConfig.Info.Title = "Kubernetes"
	c.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, namer)
	c.OpenAPIV3Config.Info.Title = "Kubernetes"
}

// notFound answers for paths that nobody knows. While stored custom resources are still being read, a path may only be unknown yet, and
// a client that sees 404 would take objects for deleted.
func (s *Server) notFound() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-s.crdsKnown():
			http.NotFound(w, r)
		default:
			w.Header().Set("Retry-After", "1")
			http.Error(w, "custom resources are still being read", http.StatusServiceUnavailable)
		}
	})
}
