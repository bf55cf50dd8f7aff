package registry

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/nodeactor/nodeactor/test/registry/image"
)

// Registry is one running registry. It ends with its test.
type Registry struct {
	// Host is "127.0.0.1:port", the first part of references to this registry.
	Host string

	t      testing.TB
	server *httptest.Server

	mu       sync.Mutex
	user     string
	password string
	before   func(w http.ResponseWriter, r *http.Request) bool
	requests []string
}

// Start runs an empty registry that keeps its blobs in memory.
func Start(t testing.TB) *Registry {
	t.Helper()
	r := &Registry{t: t}
	blobs := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if r.admit(w, req) {
			blobs.ServeHTTP(w, req)
		}
	}))
	r.Host = strings.TrimPrefix(r.server.URL, "http://")
	t.Cleanup(func() {
		r.server.CloseClientConnections()
		r.server.Close()
	})
	return r
}

// RequireAuth refuses every request without these credentials from now on.
func (r *Registry) RequireAuth(user, password string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.user, r.password = user, password
}

// Intercept calls f before each request. When f returns false it has answered itself. nil ends it.
func (r *Registry) Intercept(f func(w http.ResponseWriter, req *http.Request) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.before = f
}

// Requests counts the requests so far whose "METHOD /path" contains part.
func (r *Registry) Requests(part string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, line := range r.requests {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

func (r *Registry) admit(w http.ResponseWriter, req *http.Request) bool {
	r.mu.Lock()
	r.requests = append(r.requests, req.Method+" "+req.URL.Path)
	user, password, before := r.user, r.password, r.before
	r.mu.Unlock()
	if gotUser, gotPassword, _ := req.BasicAuth(); user != "" && (gotUser != user || gotPassword != password) {
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`, http.StatusUnauthorized)
		return false
	}
	return before == nil || before(w, req)
}

// Push stores an image under "repository:tag" and returns the full reference to pull it by.
func (r *Registry) Push(repoTag string, img v1.Image) string {
	r.t.Helper()
	ref := r.Ref(repoTag)
	if err := remote.Write(r.parse(ref), img, r.auth()); err != nil {
		r.t.Fatalf("cannot push %s: %v", ref, err)
	}
	return ref
}

// PushIndex stores an index of images for several platforms.
func (r *Registry) PushIndex(repoTag string, index v1.ImageIndex) string {
	r.t.Helper()
	ref := r.Ref(repoTag)
	if err := remote.WriteIndex(r.parse(ref), index, r.auth()); err != nil {
		r.t.Fatalf("cannot push index %s: %v", ref, err)
	}
	return ref
}

// PushSpec builds and stores an image.
func (r *Registry) PushSpec(repoTag string, spec image.Spec) string {
	r.t.Helper()
	return r.Push(repoTag, Build(r.t, spec))
}

// Ref is the full reference of "repository:tag" in this registry.
func (r *Registry) Ref(repoTag string) string { return r.Host + "/" + repoTag }

func (r *Registry) parse(ref string) name.Reference {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		r.t.Fatalf("cannot parse %s: %v", ref, err)
	}
	return parsed
}

func (r *Registry) auth() remote.Option {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.user == "" {
		return remote.WithAuth(authn.Anonymous)
	}
	return remote.WithAuth(authn.FromConfig(authn.AuthConfig{Username: r.user, Password: r.password}))
}

// Build makes the image of a spec or fails the test.
func Build(t testing.TB, spec image.Spec) v1.Image {
	t.Helper()
	img, err := image.Build(spec)
	if err != nil {
		t.Fatalf("cannot build image: %v", err)
	}
	return img
}

// Image is an image as it is built, pushed and archived.
type Image = v1.Image
