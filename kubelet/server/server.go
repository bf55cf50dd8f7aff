package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/nodeactor/nodeactor/kubelet/runtime"
)

// Pods is what the server sees of the node's pods. Results are shared: read, do not write.
type Pods interface {
	Find(namespace, name, uid string) (*v1.Pod, bool)
	List() []*v1.Pod
	// Ended is closed when the container is gone.
	Ended(uid, containerID string) <-chan struct{}
}

// Deps is what the server works with.
type Deps struct {
	// Context ends all streams when it ends.
	Context context.Context
	Node    string
	Pods    Pods
	Runtime runtime.Runtime
	// PodDir is the directory of a pod.
	PodDir func(uid string) string
	// Authorize decides whether a client that showed a good certificate may use verb on the node's subresource.
	Authorize func(ctx context.Context, user string, groups []string, verb, subresource string) error
	// Sleep waits between two looks at a followed log; Now is the time.
	Sleep func(ctx context.Context, d time.Duration) error
	Now   func() time.Time
	// Health is nil when the node's runtime answers.
	Health func() error
	// Metrics adds to /metrics; may be nil.
	Metrics http.Handler
	// Panicked is told of a panic in a stream.
	Panicked func(where string, value any)
}

// New makes the handler of the kubelet's port.
func New(d Deps) http.Handler {
	s := &server{d}
	mux := http.NewServeMux()
	s.handle(mux, "/healthz", "proxy", s.healthz)
	s.handle(mux, "/healthz/", "proxy", s.healthz)
	s.handle(mux, "/pods", "pods", s.pods)
	s.handle(mux, "/pods/", "pods", s.pods)
	s.handle(mux, "/runningpods/", "pods", s.runningPods)
	s.handle(mux, "/containerLogs/{namespace}/{pod}/{container}", "log", s.containerLogs)
	s.handle(mux, "/exec/{namespace}/{pod}/{container}", "exec", s.exec)
	s.handle(mux, "/exec/{namespace}/{pod}/{uid}/{container}", "exec", s.exec)
	s.handle(mux, "/attach/{namespace}/{pod}/{container}", "attach", s.attach)
	s.handle(mux, "/attach/{namespace}/{pod}/{uid}/{container}", "attach", s.attach)
	s.handle(mux, "/portForward/{namespace}/{pod}", "portforward", s.portForward)
	s.handle(mux, "/portForward/{namespace}/{pod}/{uid}", "portforward", s.portForward)
	s.handle(mux, "/stats/summary", "stats", s.summary)
	s.handle(mux, "/metrics", "metrics", s.metrics)
	s.handle(mux, "/metrics/resource", "metrics", s.resourceMetrics)
	for _, p := range []string{"/run/", "/logs/", "/checkpoint/", "/configz", "/metrics/cadvisor", "/metrics/probes", "/debug/"} {
		s.handle(mux, p, "proxy", notServed)
	}
	return mux
}

type server struct{ Deps }

// handle serves pattern to those who may use subresource. Streams are opened by GET as well as POST.
func (s *server) handle(mux *http.ServeMux, pattern, subresource string, f http.HandlerFunc) {
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		user, groups, ok := identity(r)
		if !ok {
			http.Error(w, "Unauthorized: a client certificate of the cluster is needed", http.StatusUnauthorized)
			return
		}
		if err := s.Authorize(r.Context(), user, groups, verb(r.Method), subresource); err != nil {
			http.Error(w, fmt.Sprintf("Forbidden (user=%s, verb=%s, resource=nodes, subresource=%s): %v", user, verb(r.Method), subresource, err), http.StatusForbidden)
			return
		}
		f(w, r)
	})
}

// identity is who the client's verified certificate says it is.
func identity(r *http.Request) (user string, groups []string, ok bool) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || len(r.TLS.VerifiedChains[0]) == 0 {
		return "", nil, false
	}
	subject := r.TLS.VerifiedChains[0][0].Subject
	return subject.CommonName, subject.Organization, subject.CommonName != ""
}

func verb(method string) string {
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	return "get"
}

func notServed(w http.ResponseWriter, r *http.Request) {
	http.Error(w, r.URL.Path+" is not served by this kubelet", http.StatusNotImplemented)
}

func (s *server) healthz(w http.ResponseWriter, r *http.Request) {
	if p := strings.TrimPrefix(r.URL.Path, "/healthz"); p != "" && p != "/" && p != "/ping" && p != "/log" && p != "/syncloop" {
		http.NotFound(w, r)
		return
	}
	if err := s.Health(); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprint(w, "ok")
}

func (s *server) pods(w http.ResponseWriter, _ *http.Request) {
	list := v1.PodList{}
	for _, p := range s.Pods.List() {
		list.Items = append(list.Items, *p)
	}
	writeList(w, list)
}

// runningPods shows what the runtime truly runs, even of pods nobody knows.
func (s *server) runningPods(w http.ResponseWriter, r *http.Request) {
	records, err := s.Runtime.List(r.Context())
	if err != nil {
		http.Error(w, fmt.Sprintf("cannot list running pods: %v", err), http.StatusInternalServerError)
		return
	}
	list := v1.PodList{}
	for _, rec := range records {
		if p := runningPod(rec); len(p.Spec.Containers) > 0 {
			list.Items = append(list.Items, p)
		}
	}
	writeList(w, list)
}

func runningPod(rec runtime.PodRecord) (p v1.Pod) {
	p.Name, p.Namespace, p.UID = rec.Spec.Name, rec.Spec.Namespace, uid(rec.Spec.PodUID)
	for _, c := range rec.Containers {
		if c.State == runtime.Running {
			p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: c.Name, Image: c.Labels["image"]})
		}
	}
	return p
}

func writeList(w http.ResponseWriter, list v1.PodList) {
	list.Kind, list.APIVersion = "PodList", "v1"
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list) // the client is gone if this fails
}
