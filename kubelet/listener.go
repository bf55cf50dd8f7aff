package kubelet

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/nodeactor/nodeactor/kubelet/server"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/serve"
)

const (
	// headerLimit bounds how long a client may take to send its request's head.
	headerLimit   = 10 * time.Second
	shutdownGrace = 2 * time.Second
)

// Who may use the server when no Authorizer is given.
const (
	mastersGroup       = "system:masters"
	apiServerClient    = "kube-apiserver-kubelet-client"
	apiServerClientAlt = "system:kube-apiserver"
)

// listenerChild serves the kubelet's own port.
type listenerChild struct {
	*shared
	port supervision.Handler
}

// Receive hands every message to the actor of the port.
func (l *listenerChild) Receive(ctx supervision.Context, msg any) error {
	if _, ok := msg.(supervision.Started); ok && l.ServingTLS != nil {
		l.port = l.listen(ctx.Clock(), ctx.Log())
	}
	if l.port == nil {
		return nil
	}
	return l.port.Receive(ctx, msg)
}

func (l *listenerChild) listen(clock supervision.Clock, logger *slog.Logger) supervision.Handler {
	probe := l.ProbeTLS
	if probe == nil {
		probe = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true} // it calls itself, and any answer will do
	}
	return serve.New(serve.Config{
		Network: "tcp", Addr: l.Config.ListenAddr, Probe: serve.HTTPProbe(probe, "/healthz"),
		Serve: func(ctx context.Context, ln net.Listener) error {
			srv := &http.Server{Handler: l.handler(ctx, clock, logger), ReadHeaderTimeout: headerLimit}
			return serve.HTTP(ctx, srv, tls.NewListener(ln, l.ServingTLS), shutdownGrace, logger)
		},
	})
}

// handler answers until ctx ends.
func (l *listenerChild) handler(ctx context.Context, clock supervision.Clock, logger *slog.Logger) http.Handler {
	return server.New(server.Deps{
		Context: ctx, Node: l.Config.NodeName, Pods: l.table, Runtime: l.Runtime, PodDir: l.env.Volumes.PodDir,
		Authorize: l.authorize, Sleep: clock.Sleep, Now: clock.Now, Metrics: l.Metrics,
		Health: func() error { return l.ready(clock.Now()) },
		Panicked: func(where string, value any) {
			logger.Error("panic in a stream", "where", where, "panic", value)
		},
	})
}

// authorize asks the given Authorizer, or lets in only the cluster's administrators and the API server.
func (l *listenerChild) authorize(ctx context.Context, user string, groups []string, verb, subresource string) error {
	if l.Authorizer != nil {
		return l.Authorizer.Authorize(ctx, user, groups, verb, subresource)
	}
	if slices.Contains(groups, mastersGroup) || user == apiServerClient || user == apiServerClientAlt {
		return nil
	}
	return fmt.Errorf("only members of %s and the API server may use this port", mastersGroup)
}
