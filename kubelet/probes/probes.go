// Package probes asks a container how it is, over HTTP, TCP or gRPC, or by a command inside it.
package probes

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/nodeactor/nodeactor/kubelet/pod/core"
)

const (
	// maxOutput bounds what of an answer goes into an Event.
	maxOutput = 10 << 10
	// userAgent is what servers see; many filter it from their access logs.
	userAgent = "kube-probe/1.37"
	// maxRedirects is how many redirections to the same host a probe follows.
	maxRedirects = 10
)

// Target is the container asked.
type Target struct {
	PodIP     string
	Container *v1.Container
	// Exec runs a command in the container and returns its exit code and the beginning of its output.
	Exec func(ctx context.Context, command []string) (code int, output string, err error)
}

// Run makes one probe and returns its outcome with a text for Events. ctx bounds it; running out of it is a Failure.
func Run(ctx context.Context, h v1.ProbeHandler, t Target) (core.Outcome, string) {
	switch {
	case h.HTTPGet != nil:
		return overHTTP(ctx, h.HTTPGet, t)
	case h.TCPSocket != nil:
		return overTCP(ctx, h.TCPSocket, t)
	case h.GRPC != nil:
		return overGRPC(ctx, h.GRPC, t)
	case h.Exec != nil:
		return byExec(ctx, h.Exec, t)
	}
	return core.Unknown, "probe without a handler"
}

// Port resolves a port by number or by its name in the container.
func Port(p intstr.IntOrString, c *v1.Container) (string, error) {
	n := p.IntValue()
	if p.Type == intstr.String {
		for i := range c.Ports {
			if c.Ports[i].Name == p.StrVal {
				n = int(c.Ports[i].ContainerPort)
			}
		}
	}
	if n < 1 || n > 65535 {
		return "", fmt.Errorf("cannot use port %q of container %s", p.String(), c.Name)
	}
	return strconv.Itoa(n), nil
}

func hostOr(host, ip string) string {
	if host != "" {
		return host
	}
	return ip
}

// Request builds the request of an httpGet action.
func Request(ctx context.Context, a *v1.HTTPGetAction, t Target) (*http.Request, error) {
	port, err := Port(a.Port, t.Container)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(a.Path)
	if err != nil {
		u = &url.URL{Path: a.Path}
	}
	u.Scheme = strings.ToLower(string(a.Scheme))
	if u.Scheme == "" {
		u.Scheme = "http"
	}
	u.Host = net.JoinHostPort(hostOr(a.Host, t.PodIP), port)
	if !strings.HasPrefix(u.Path, "/") {
		u.Path = "/" + u.Path
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept", "*/*")
	for _, h := range a.HTTPHeaders {
		if strings.EqualFold(h.Name, "Host") {
			req.Host = h.Value
			continue
		}
		req.Header.Add(h.Name, h.Value)
	}
	return req, nil
}

// client never keeps a connection: a probe must see what a new client sees.
var client = &http.Client{
	Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, //nolint:gosec // probes do not verify
	CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if req.URL.Hostname() != via[0].URL.Hostname() {
			return http.ErrUseLastResponse
		}
		if len(via) >= maxRedirects {
			return errors.New("stopped after 10 redirects")
		}
		return nil
	},
}

// Get makes the request of an httpGet action and returns status and the beginning of the body.
func Get(ctx context.Context, a *v1.HTTPGetAction, t Target) (int, string, error) {
	req, err := Request(ctx, a, t)
	if err != nil {
		return 0, "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxOutput))
	return resp.StatusCode, string(body), nil
}

func overHTTP(ctx context.Context, a *v1.HTTPGetAction, t Target) (core.Outcome, string) {
	if _, err := Port(a.Port, t.Container); err != nil {
		return core.Unknown, err.Error()
	}
	code, body, err := Get(ctx, a, t)
	switch {
	case err != nil:
		return core.Failure, err.Error()
	case code >= http.StatusOK && code < http.StatusBadRequest:
		return core.Success, body
	}
	return core.Failure, fmt.Sprintf("HTTP probe failed with statuscode: %d", code)
}

func overTCP(ctx context.Context, a *v1.TCPSocketAction, t Target) (core.Outcome, string) {
	port, err := Port(a.Port, t.Container)
	if err != nil {
		return core.Unknown, err.Error()
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(hostOr(a.Host, t.PodIP), port))
	if err != nil {
		return core.Failure, err.Error()
	}
	conn.Close()
	return core.Success, ""
}

func byExec(ctx context.Context, a *v1.ExecAction, t Target) (core.Outcome, string) {
	code, output, err := t.Exec(ctx, a.Command)
	switch {
	case ctx.Err() != nil:
		return core.Failure, fmt.Sprintf("command timed out: %s", strings.Join(a.Command, " "))
	case err != nil:
		return core.Failure, err.Error()
	case code != 0:
		return core.Failure, output
	}
	return core.Success, output
}

func overGRPC(ctx context.Context, a *v1.GRPCAction, t Target) (core.Outcome, string) {
	addr := net.JoinHostPort(t.PodIP, strconv.Itoa(int(a.Port)))
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithUserAgent(userAgent))
	if err != nil {
		return core.Failure, fmt.Sprintf("cannot connect to %s: %v", addr, err)
	}
	defer conn.Close()
	service := ""
	if a.Service != nil {
		service = *a.Service
	}
	resp, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: service})
	if err != nil {
		if status.Code(err) == codes.Unimplemented {
			return core.Failure, fmt.Sprintf("this server does not implement the grpc health protocol (grpc.health.v1.Health): %v", err)
		}
		return core.Failure, fmt.Sprintf("health rpc failed: %v", err)
	}
	if resp.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		return core.Failure, fmt.Sprintf("service unhealthy (responded with %q)", resp.GetStatus())
	}
	return core.Success, "service healthy"
}
