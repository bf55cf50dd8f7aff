package apiserver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

func observedRequest(method string, info request.RequestInfo, query, agent string) *http.Request {
	r := httptest.NewRequest(method, "/somewhere?"+query, nil)
	r.Header.Set("User-Agent", agent)
	ctx := request.WithUser(r.Context(), &user.DefaultInfo{Name: "alice"})
	return r.WithContext(request.WithRequestInfo(ctx, &info))
}

func TestObserverIsToldOfEveryWrite(t *testing.T) {
	var told []Write
	s := &Server{config: Config{Observe: func(_ context.Context, w Write) { told = append(told, w) }}}
	served := 0
	h := s.observed(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
	deployment := request.RequestInfo{IsResourceRequest: true, APIGroup: "apps", Resource: "deployments", Namespace: "ns", Name: "web"}
	pod := request.RequestInfo{IsResourceRequest: true, Resource: "pods", Subresource: "status", Namespace: "ns", Name: "p"}
	for _, r := range []*http.Request{
		observedRequest(http.MethodGet, deployment, "", "kubectl/v1"),
		observedRequest(http.MethodPatch, pod, "", "kubelet/v1"),
		observedRequest(http.MethodPost, request.RequestInfo{Path: "/debug"}, "", "curl/8"),
		observedRequest(http.MethodPatch, deployment, "fieldManager=me&force=true", "kubectl/v1"),
		observedRequest(http.MethodDelete, deployment, "", "kubectl/v1.2 (linux)"),
	} {
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	patch := Write{User: "alice", Manager: "me", Method: http.MethodPatch, Group: "apps", Resource: "deployments", Namespace: "ns", Name: "web"}
	remove := patch
	remove.Manager, remove.Method = "kubectl", http.MethodDelete
	var want []Write
	for _, w := range []Write{patch, remove} {
		answered := w
		answered.Answered = true
		want = append(want, w, answered)
	}
	if served != 5 || len(told) != len(want) {
		t.Fatalf("%d requests served, told of %+v", served, told)
	}
	for i := range want {
		if told[i] != want[i] {
			t.Errorf("told of %+v, want %+v", told[i], want[i])
		}
	}
}

// BenchmarkObserved is what the observer's place in the chain costs a write, without the observer.
func BenchmarkObserved(b *testing.B) {
	s := &Server{config: Config{Observe: func(context.Context, Write) {}}}
	h := s.observed(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	r := observedRequest(http.MethodPatch, request.RequestInfo{IsResourceRequest: true, Resource: "pods", Name: "p"}, "", "kubectl/v1")
	w := httptest.NewRecorder()
	b.ReportAllocs()
	for range b.N {
		h.ServeHTTP(w, r)
	}
}
