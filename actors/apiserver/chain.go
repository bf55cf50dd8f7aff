package apiserver

import (
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	genericfilters "k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/filters/impersonation"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/filters"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/nodeactor/nodeactor/store/deepstack"
)

// isLongRunning reports whether a request may outlive requestTimeout.
var isLongRunning = filters.BasicLongRunningRequestCheck(
	sets.NewString("watch", "proxy"),
	sets.NewString("attach", "exec", "proxy", "log", "portforward"),
)

// networkChain wraps the API in what every request over the network passes, the outermost last: upstream's filters in upstream's order. Left
// out are those that would do nothing here: tracing and latency recording without a receiver, audit without a backend, CORS and HSTS
// without a configuration.
func (s *Server) networkChain(api http.Handler, c *genericapiserver.Config) http.Handler {
	h := genericfilters.WithAuthorization(s.refusingTreeWrites(s.observed(compressing(api))), c.Authorization.Authorizer, c.Serializer)
	h = filters.WithMaxInFlightLimit(h, maxReadsInFlight, maxWritesInFlight, isLongRunning)
	h = impersonation.WithConstrainedImpersonation(h, c.Authorization.Authorizer, c.Serializer)
	h = genericfilters.WithAuthentication(h, c.Authentication.Authenticator, genericfilters.Unauthorized(c.Serializer), audiences, c.Authentication.RequestHeaderConfig)
	h = genericfilters.WithWarningRecorder(h)
	h = reserving(h, deepstack.Reserve)
	h = filters.WithTimeoutForNonLongRunningRequests(h, isLongRunning)
	h = genericfilters.WithRequestDeadline(h, nil, nil, isLongRunning, c.Serializer, requestTimeout)
	h = filters.WithWaitGroup(h, isLongRunning, c.NonLongRunningRequestWaitGroup)
	h = genericfilters.WithCacheControl(h)
	h = genericfilters.WithRequestInfo(h, c.RequestInfoResolver)
	h = genericfilters.WithRequestReceivedTimestamp(h)
	h = s.recovering(h)
	h = genericfilters.WithAuditInit(h)
	return reserving(h, deepstack.ReserveEntry)
}

// inProcessChain wraps the API in what a request from within the process passes. Who asks is known already; authorization, admission and
// validation are the same as over the network.
func (s *Server) inProcessChain(api http.Handler, resolver request.RequestInfoResolver) http.Handler {
	h := genericfilters.WithAuthorization(s.refusingTreeWrites(s.observed(api)), s.authorizer, legacyscheme.Codecs)
	h = genericfilters.WithWarningRecorder(h)
	h = genericfilters.WithRequestInfo(h, resolver)
	h = genericfilters.WithRequestReceivedTimestamp(h)
	h = s.recovering(h)
	return genericfilters.WithAuditInit(h)
}

// reserving gives the goroutine that a request is on a stack it need not grow: the one it comes in on, and the one that the timeout filter starts.
func reserving(h http.Handler, reserve func()) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reserve()
		h.ServeHTTP(w, r)
	})
}

// reservingCreater does the same for a creation, which runs on a further goroutine of upstream's and asks for an empty object first.
type reservingCreater struct{ runtime.ObjectCreater }

// New implements runtime.ObjectCreater.
func (c reservingCreater) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	deepstack.Reserve()
	return c.ObjectCreater.New(kind)
}
