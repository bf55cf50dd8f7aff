package probes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/nodeactor/nodeactor/kubelet/pod/core"
)

func port(t *testing.T, addr string) int {
	t.Helper()
	_, p, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	n, _ := strconv.Atoi(p)
	return n
}

func TestHTTP(t *testing.T) {
	mux := http.NewServeMux()
	for code := range 5 {
		code := (code + 1) * 100
		if code == 100 {
			continue
		}
		mux.HandleFunc(fmt.Sprintf("/%d", code), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
	}
	mux.HandleFunc("/here", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/500", http.StatusFound) })
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://203.0.113.1/", http.StatusFound)
	})
	mux.HandleFunc("/headers", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-A") != "b" || r.Host != "example.org" || !strings.HasPrefix(r.UserAgent(), "kube-probe/") || r.URL.RawQuery != "q=1" {
			w.WriteHeader(http.StatusTeapot)
		}
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	target := Target{PodIP: "127.0.0.1", Container: &v1.Container{Name: "c", Ports: []v1.ContainerPort{{Name: "web", ContainerPort: int32(port(t, srv.Listener.Addr().String()))}}}}
	for path, want := range map[string]core.Outcome{"/200": core.Success, "/300": core.Success, "/400": core.Failure, "/500": core.Failure, "/none": core.Failure,
		"/here": core.Failure, "/away": core.Success, "200": core.Success, "/headers?q=1": core.Success} {
		got, text := Run(t.Context(), v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: path, Port: intstr.FromString("web"),
			HTTPHeaders: []v1.HTTPHeader{{Name: "X-A", Value: "b"}, {Name: "host", Value: "example.org"}}}}, target)
		if got != want {
			t.Errorf("%s: %d %s", path, got, text)
		}
	}
	if got, _ := Run(t.Context(), v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Port: intstr.FromString("nope")}}, target); got != core.Unknown {
		t.Errorf("unknown port: %d", got)
	}
}

func TestHTTPSIsNotVerified(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	got, text := Run(t.Context(), v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Scheme: v1.URISchemeHTTPS, Port: intstr.FromInt(port(t, srv.Listener.Addr().String()))}},
		Target{PodIP: "127.0.0.1", Container: &v1.Container{}})
	if got != core.Success {
		t.Errorf("%d %s", got, text)
	}
}

func TestTCPAndTimeout(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := intstr.FromInt(port(t, ln.Addr().String()))
	target := Target{PodIP: "127.0.0.1", Container: &v1.Container{}}
	if got, _ := Run(t.Context(), v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: p}}, target); got != core.Success {
		t.Error("a listening port failed")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if got, _ := Run(ctx, v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Port: p}}, target); got != core.Failure {
		t.Error("a server that never answers passed")
	}
	ln.Close()
	if got, _ := Run(t.Context(), v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: p}}, target); got != core.Failure {
		t.Error("a closed port passed")
	}
}

func TestExec(t *testing.T) {
	for name, c := range map[string]struct {
		code int
		err  error
		want core.Outcome
	}{"passes": {0, nil, core.Success}, "fails": {1, nil, core.Failure}, "cannot": {0, errors.New("no such file"), core.Failure}} {
		got, _ := Run(t.Context(), v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"x"}}}, Target{Exec: func(context.Context, []string) (int, string, error) { return c.code, "", c.err }})
		if got != c.want {
			t.Errorf("%s: %d", name, got)
		}
	}
}

func TestGRPC(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv, h := grpc.NewServer(), health.NewServer()
	healthpb.RegisterHealthServer(srv, h)
	h.SetServingStatus("up", healthpb.HealthCheckResponse_SERVING)
	h.SetServingStatus("down", healthpb.HealthCheckResponse_NOT_SERVING)
	go srv.Serve(ln)
	defer srv.Stop()
	for service, want := range map[string]core.Outcome{"up": core.Success, "down": core.Failure, "unknown": core.Failure, "": core.Success} {
		got, text := Run(t.Context(), v1.ProbeHandler{GRPC: &v1.GRPCAction{Port: int32(port(t, ln.Addr().String())), Service: &service}}, Target{PodIP: "127.0.0.1"})
		if got != want {
			t.Errorf("%q: %d %s", service, got, text)
		}
	}
}
