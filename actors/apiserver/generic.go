package apiserver

import (
	"net/http"

	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/dynamic"
	"k8s.io/component-base/tracing"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
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
	c.OpenAPIV3Config = definitionOpenAPI()
	objects, err := dynamic.NewForConfig(s.dynamicConfig())
	if err != nil {
		return nil, err
	}
	c.AdmissionControl, err = s.newAdmission(s.client, objects, clusterServices{s.client})
	return c, err
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
