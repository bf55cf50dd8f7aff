package apiserver

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/emicklei/go-restful/v3"
)

// TestRouterAgreesWithUpstream asks for all kinds of paths twice, so that the second answer is a remembered one.
func TestRouterAgreesWithUpstream(t *testing.T) {
	f := newFixture(t)
	container := f.Server.api.Handler.GoRestfulContainer
	services, quick := container.RegisteredWebServices(), &router{}
	paths := []string{
		"/", "/api", "/api/", "/api/v1", "/api/v1/pods", "/api/v1/pods/", "/api/v1/namespaces/pods", "/api/v1/namespaces/a/pods",
		"/api/v1/namespaces/a/pods/b", "/api/v1/namespaces/pods/pods/pods", "/api/v1/namespaces/a/pods/b/log", "/api/v1/namespaces/a/pods/b/nothing",
		"/api/v1/namespaces/a/pods/b/proxy", "/api/v1/namespaces/a/pods/b/proxy/c/d", "/api/v1/namespaces/a/status", "/api/v1//pods", "/api/v1/*", "/api/v1/watch/pods",
		"/apis/apps/v1/namespaces/a/deployments/b/scale", "/apis/apps/v1/nothing", "/apis/nothing", "/nothing",
	}
	seen := 0
	for range 2 {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete, http.MethodOptions} {
			for _, accept := range []string{"", "application/json", "application/yaml;as=Table", "text/nothing"} {
				for _, path := range paths {
					req := httptest.NewRequest(method, path, nil)
					req.Header.Set("Accept", accept)
					_, want, wantErr := restful.CurlyRouter{}.SelectRoute(services, req)
					_, got, err := quick.SelectRoute(services, req)
					if (err == nil) != (wantErr == nil) || err == nil && (got.Path != want.Path || got.Method != want.Method) {
						t.Errorf("%s %s (%s): got %v, %v; want %v, %v", method, path, accept, got, err, want, wantErr)
					}
					if err == nil {
						seen++
					}
				}
			}
		}
	}
	if kept := len(quick.routes); seen < 100 || kept == 0 || kept >= seen {
		t.Errorf("%d routes found, %d shapes kept", seen, kept)
	}
}
