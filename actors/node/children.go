package node

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/nodeactor/nodeactor/actors/apiserver"
	"github.com/nodeactor/nodeactor/cluster/identity"
	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/serve"
)

const (
	// openTimeout bounds opening the store; a large one is read into memory.
	openTimeout = 110 * time.Second
	// closeTimeout bounds closing it.
	closeTimeout = 15 * time.Second
	// assembleTimeout bounds making the API server.
	assembleTimeout = 50 * time.Second
	// bootstrapTimeout bounds one attempt to write what every cluster has.
	bootstrapTimeout = 25 * time.Second
	// bootstrapAgain is how long it waits for a server in place of one that went away meanwhile.
	bootstrapAgain = 100 * time.Millisecond
	// renewEvery is how often the administrator's kubeconfig is looked at.
	renewEvery = 24 * time.Hour
	// headerTimeout bounds how long a client may take to say what it wants.
	headerTimeout = 30 * time.Second
	// drainTimeout is what open requests get when the API stops; watches are cut then.
	drainTimeout = 2 * time.Second
	// maxStreams and streamWindow are upstream's settings for HTTP/2.
	maxStreams   = 250
	streamWindow = 256 * 1024
	// pingAfter is how long a client may be silent before it is asked whether it is there, pingTimeout how long it may take to answer: one that
	// went away without a word would keep its watches open.
	pingAfter, pingTimeout = 30 * time.Second, 15 * time.Second
)

// errLost is returned when a part reports that it cannot go on.
var errLost = errors.New("it cannot go on")

// keeper is an actor that makes a thing in one job, keeps it until it is stopped, and then
// closes it. It is ready once the thing is made.
type keeper[T any] struct {
	limit time.Duration
	make  func(ctx context.Context) (T, error)
	// publish lets others see the thing before the child counts as ready; hide undoes that.
	publish func(v T) (hide func())
	// keep returns when ctx ends, or earlier with the reason why the thing is of no use any more.
	keep func(ctx context.Context, v T) error
}

// Receive implements supervision.Handler.
func (k *keeper[T]) Receive(ctx supervision.Context, msg any) error {
	switch m := msg.(type) {
	case supervision.Started:
		ctx.DeferReady()
		ctx.Go(supervision.Job{Name: "make", Deadline: k.limit, Run: func(c context.Context, _ func()) (any, error) { return k.make(c) }})
	case supervision.JobDone:
		if m.Err != nil {
			return m.Err
		}
		if m.Name != "make" {
			return errLost
		}
		v := m.Value.(T)
		hide := k.publish(v)
		ctx.Go(supervision.Job{Name: "keep", Endless: true, Run: func(c context.Context, _ func()) (any, error) {
			defer hide()
			return nil, k.keep(c, v)
		}})
		ctx.Ready()
	}
	return nil
}

// serverChild makes the API server and keeps it.
func (p *parts) serverChild(health http.Handler, extra map[string]http.Handler) supervision.Handler {
	return &keeper[*apiserver.Server]{
		limit: assembleTimeout,
		make: func(ctx context.Context) (*apiserver.Server, error) {
			s, _ := p.store.get()
			if s == nil {
				return nil, ErrNotUp
			}
			return apiserver.New(ctx, apiserver.Config{
				Store: s, Identity: p.identity, Log: p.log, ServiceCIDR: p.cfg.ServiceCIDR, Health: health, ExtraHandlers: extra, WithoutEffect: withoutEffect(), Tree: p.sys, Observe: p.observe,
				AdvertiseAddr: netip.AddrPortFrom(p.address, netip.MustParseAddrPort(expandHost(p.cfg.APIAddr)).Port()).String(),
			})
		},
		publish: p.server.set,
		keep: func(ctx context.Context, s *apiserver.Server) error {
			defer s.Close()
			return p.followEncryption(ctx)
		},
	}
}

// ticker is an actor that does one short thing when it starts and every so often.
type ticker struct {
	name  string
	every time.Duration
	limit time.Duration
	do    func(ctx context.Context) error
}

type tick struct{}

// Receive implements supervision.Handler.
func (t *ticker) Receive(ctx supervision.Context, msg any) error {
	switch m := msg.(type) {
	case supervision.Started, tick:
		ctx.Go(supervision.Job{Name: t.name, Deadline: t.limit, Run: func(c context.Context, _ func()) (any, error) { return nil, t.do(c) }})
	case supervision.JobDone:
		if m.Err != nil {
			return m.Err
		}
		ctx.After(t.every, tick{})
	}
	return nil
}

// identityChild keeps the administrator's kubeconfig valid.
func (p *parts) identityChild() supervision.Handler {
	return &ticker{name: "kubeconfig", every: renewEvery, limit: 20 * time.Second, do: func(context.Context) error {
		return p.identity.WriteKubeconfig(p.cfg.Kubeconfig(), "https://"+reachable(p.cfg.APIAddr))
	}}
}

// reachable turns "every address" into one that the host itself can call.
func reachable(addr string) string {
	ap := netip.MustParseAddrPort(expandHost(addr))
	if !ap.Addr().IsUnspecified() {
		return ap.String()
	}
	return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), ap.Port()).String()
}

// bootstrapChild writes what every cluster has; afterwards it has nothing to do.
func (p *parts) bootstrapChild() supervision.Handler {
	return &ticker{name: "bootstrap", every: renewEvery, limit: bootstrapTimeout, do: func(ctx context.Context) error {
		for {
			s, _ := p.server.get()
			err := p.bootstrap(ctx, s)
			if now, _ := p.server.get(); err == nil || s != nil && now == s {
				return err
			}
			// The server was replaced meanwhile, which is no fault of who writes by it.
			if p.clock.Sleep(ctx, bootstrapAgain) != nil {
				return err
			}
		}
	}}
}

func (p *parts) bootstrap(ctx context.Context, s *apiserver.Server) error {
	if s == nil {
		return ErrNotUp
	}
	if err := s.Bootstrap(ctx); err != nil {
		return err
	}
	return p.defineKinds(ctx)
}

// listenerChild serves the API over TLS.
func (p *parts) listenerChild() supervision.Handler {
	return serve.New(serve.Config{Network: "tcp", Addr: expandHost(p.cfg.APIAddr), Probe: p.probeAPI(), Serve: func(ctx context.Context, l net.Listener) error {
		config, err := p.identity.ServerTLS(identity.APIServerHosts(p.cfg.NodeName, firstAddress(p.cfg.ServiceCIDR), p.address.AsSlice(), addressOf(p.cfg.APIAddr)))
		if err != nil {
			l.Close()
			return err
		}
		return p.serveHTTP(ctx, l, config, http.HandlerFunc(p.answer))
	}})
}

// answer hands a request to the API server that is current.
func (p *parts) answer(w http.ResponseWriter, r *http.Request) {
	if p.absent.reason() != nil {
		p.unreached(w, r)
		return
	}
	if p.damage != nil && p.damage.verdict == store.Unreadable {
		p.unreadable(w, r)
		return
	}
	s, _ := p.server.get()
	if s == nil {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "the API server is being restarted", http.StatusServiceUnavailable)
		return
	}
	if p.damage != nil {
		p.warn(w)
	}
	s.Handler().ServeHTTP(w, r)
}

func (p *parts) serveHTTP(ctx context.Context, l net.Listener, config *tls.Config, h http.Handler) error {
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerStream: streamWindow, MaxReceiveBufferPerConnection: streamWindow * maxStreams,
			SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
	if config != nil {
		config = config.Clone()
		config.NextProtos = []string{"h2", "http/1.1"}
		srv.TLSConfig = config
	}
	return serve.HTTP(ctx, srv, l, drainTimeout, p.log)
}

// firstAddress is the address of the Service kubernetes.
func firstAddress(cidr string) net.IP {
	return net.IP(netip.MustParsePrefix(cidr).Addr().Next().AsSlice())
}

func addressOf(addr string) net.IP {
	return net.IP(netip.MustParseAddrPort(expandHost(addr)).Addr().AsSlice())
}
