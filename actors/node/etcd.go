package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"slices"

	"github.com/nodeactor/nodeactor/cluster/identity"
	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/serve"
)

// etcdPath is where the local socket tells of the etcd API.
const etcdPath = "/etcd"

// writesNote is what is said loudly of a store that takes writes past the Kubernetes API.
const writesNote = "the etcd API takes writes: they go round admission, validation and the rights of Kubernetes; --etcd-writes is for tools that need it and for the time they do"

// EtcdLine is what the local socket tells of the etcd API.
type EtcdLine struct {
	// URL is its address; "" when it is off.
	URL string `json:"url"`
	// Writes tells whether it takes writes.
	Writes bool `json:"writes"`
	// Note is what whoever looks at the node should know.
	Note string `json:"note,omitempty"`
}

// etcdChild serves the etcd API of the store.
func (p *parts) etcdChild() supervision.Handler {
	return serve.New(serve.Config{Network: "tcp", Addr: expandHost(p.cfg.EtcdAddr), Probe: p.probeEtcd, Serve: func(ctx context.Context, l net.Listener) error {
		s, _ := p.store.get()
		if s == nil {
			l.Close()
			return ErrNotUp
		}
		config, err := p.identity.ServerTLS(identity.APIServerHosts(p.cfg.NodeName, firstAddress(p.cfg.ServiceCIDR), p.address.AsSlice(), addressOf(p.cfg.EtcdAddr)))
		if err != nil {
			l.Close()
			return err
		}
		config = config.Clone()
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, p.identity.CAPool()
		if p.cfg.EtcdWrites {
			p.log.Warn(writesNote, "addr", p.cfg.EtcdAddr, "group", identity.MastersGroup)
		}
		return s.ServeEtcd(ctx, l, store.EtcdOptions{TLS: config, Authorize: etcdAccess, Writes: p.cfg.EtcdWrites, URL: p.advertised(p.cfg.EtcdAddr)})
	}})
}

// etcdAccess tells what the owner of a certificate may do with the whole store, which holds every Secret.
func etcdAccess(c *x509.Certificate) store.EtcdAccess {
	switch {
	case slices.Contains(c.Subject.Organization, identity.MastersGroup):
		return store.EtcdWrite
	case slices.Contains(c.Subject.Organization, identity.EtcdReadersGroup):
		return store.EtcdRead
	}
	return store.EtcdNone
}

// advertised is the URL by which others reach a listener.
func (p *parts) advertised(addr string) string {
	ap := netip.MustParseAddrPort(expandHost(addr))
	if ap.Addr().IsUnspecified() {
		ap = netip.AddrPortFrom(p.address, ap.Port())
	}
	return "https://" + ap.String()
}

// withEtcd adds what the local socket tells of the etcd API.
func (p *parts) withEtcd(h http.Handler) http.Handler {
	line := EtcdLine{}
	if p.cfg.EtcdAddr != "off" {
		line = EtcdLine{URL: "https://" + reachable(p.cfg.EtcdAddr), Writes: p.cfg.EtcdWrites}
	}
	if line.Writes {
		line.Note = writesNote
	}
	mux := http.NewServeMux()
	mux.Handle("/", h)
	mux.HandleFunc("GET "+etcdPath, func(w http.ResponseWriter, _ *http.Request) { reply(w, line, nil) })
	return mux
}

// Etcd asks how the node serves the etcd API.
func (c *LocalClient) Etcd(ctx context.Context) (line EtcdLine, err error) {
	return line, c.do(ctx, http.MethodGet, etcdPath, nil, &line)
}
