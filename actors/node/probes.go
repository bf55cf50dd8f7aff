package node

import (
	"context"
	"net"

	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/supervision/serve"
)

// probePath is what the API's port is asked for: it passes authentication and every filter, and reads nothing.
const probePath = "/version"

// probeAPI asks the API's port as the administrator would.
func (p *parts) probeAPI() serve.Probe { return serve.HTTPProbe(p.probeTLS, probePath) }

// probeEtcd asks the port of the etcd protocol as the administrator would.
func (p *parts) probeEtcd(ctx context.Context, addr net.Addr) error {
	return store.ProbeEtcd(ctx, p.probeTLS, serve.Reachable(addr))
}
