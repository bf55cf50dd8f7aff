package apiserver

import (
	"context"
	"net/http"
	"strings"

	"k8s.io/apiserver/pkg/endpoints/request"
)

// Write is a write that somebody asks for.
type Write struct {
	// Answered is set once it has been answered, well or not.
	Answered bool
	// User is who asked, Manager the field manager it names, or else its program.
	User, Manager string
	// Method is the HTTP method; Name is empty for a creation that the server names and for collections.
	Method, Group, Resource, Namespace, Name string
}

// observed tells the observer of each write, before it is carried out and after it was answered: others may see what it changed before
// its answer. The statuses of pods, which only their kubelet writes, are left out.
func (s *Server) observed(h http.Handler) http.Handler {
	observe := s.config.Observe
	if observe == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		write, ok := writeOf(r)
		if !ok {
			h.ServeHTTP(w, r)
			return
		}
		observe(r.Context(), write)
		h.ServeHTTP(w, r)
		write.Answered = true
		observe(r.Context(), write)
	})
}

// writeOf reads a write from a request that went through authorization.
func writeOf(r *http.Request) (Write, bool) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return Write{}, false
	}
	info, ok := request.RequestInfoFrom(r.Context())
	if !ok || !info.IsResourceRequest || info.Resource == "pods" && info.Subresource == "status" {
		return Write{}, false
	}
	return Write{
		User: userOf(r.Context()), Manager: managerOf(r),
		Method: r.Method, Group: info.APIGroup, Resource: info.Resource, Namespace: info.Namespace, Name: info.Name,
	}, true
}

func userOf(ctx context.Context) string {
	if who, ok := request.UserFrom(ctx); ok {
		return who.GetName()
	}
	return ""
}

// managerOf is the field manager as the API derives it: what the request names, or the first part of the user agent.
func managerOf(r *http.Request) string {
	if strings.Contains(r.URL.RawQuery, "fieldManager=") {
		return r.URL.Query().Get("fieldManager")
	}
	name, _, _ := strings.Cut(r.UserAgent(), "/")
	return name
}
