package kubelet

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/nodeactor/nodeactor/kubelet/server"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/serve"
)

const (
	// headerLimit bounds how long a client may take to send its request's head, bindDeadline how long a bind may take.
	headerLimit   = 10 * time.Second
	shutdownGrace = 2 * time.Second
	bindDeadline  = 10 * time.Second
)

// Who may use the server when no Authorizer is given.
const (
	mastersGroup       = "system:masters"
	apiServerClient    = "kube-apiserver-kubelet-client"
	apiServerClientAlt = "system:kube-apiserver"
)

// listenerChild serves the kubelet's own port.
type listenerChild struct{ *shared }

// Receive handles one message.
func (l *listenerChild) Receive(ctx supervision.Context, msg any) error {
	switch msg := msg.(type) {
	case supervision.Started:
		if l.ServingTLS == nil {
			return nil
		}
		ctx.DeferReady()
		l.bind(ctx)
	case supervision.JobDone:
		if msg.Err != nil {
			return msg.Err
		}
		if ln, ok := msg.Value.(net.Listener); ok {
			ctx.Ready()
			l.serve(ctx, ln)
			return nil
		}
		return errors.New("cannot serve the kubelet's port: the server ended")
	}
	return nil
}

func (l *listenerChild) bind(ctx supervision.Context) {
	addr := l.Config.ListenAddr
	ctx.Go(supervision.Job{Name: "bind", Deadline: bindDeadline, Run: func(c context.Context, _ func()) (any, error) {
		var lc net.ListenConfig
		ln, err := lc.Listen(c, "tcp", addr)
		if err != nil {
			return nil, serve.BindError(addr, err)
		}
		return ln, nil
	}})
}

func (l *listenerChild) serve(ctx supervision.Context, ln net.Listener) {
	clock, logger := ctx.Clock(), ctx.Log()
	ctx.Go(supervision.Job{Name: "serve", Endless: true, Run: func(c context.Context, _ func()) (any, error) {
		handler := server.New(server.Deps{
			Context: c, Node: l.Config.NodeName, Pods: l.table, Runtime: l.Runtime, PodDir: l.env.Volumes.PodDir,
			Authorize: l.authorize, Sleep: clock.Sleep, Now: clock.Now, Metrics: l.Metrics,
			Health: func() error { return l.ready(clock.Now()) },
			Panicked: func(where string, value any) {
				logger.Error("panic in a stream", "where", where, "panic", value)
			},
		})
		srv := &http.Server{Handler: handler, ReadHeaderTimeout: headerLimit}
		return nil, serve.HTTP(c, srv, tls.NewListener(ln, l.ServingTLS), shutdownGrace, logger)
	}})
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
