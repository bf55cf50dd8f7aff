package node

import (
	"log/slog"
	"net/netip"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/health"
	"github.com/nodeactor/nodeactor/cluster/identity"
	"github.com/nodeactor/nodeactor/supervision"
)

// Blueprint is the tree that a node with this configuration runs: the same children, in the
// same shape, with the same windows and policies. Nothing of it is opened or started; only
// the keys it would have are made in the data directory. Whoever starts it gives each worker
// other code first: the product's would find none of what it needs.
func Blueprint(cfg Config) (supervision.Spec, error) {
	id, err := identity.Load(filepath.Join(cfg.DataDir, "pki"))
	if err != nil {
		return supervision.Spec{}, err
	}
	p := &parts{
		cfg: cfg, log: slog.New(slog.DiscardHandler), clock: supervision.RealClock(), identity: id, beats: newHeartbeats(),
		metrics: prometheus.NewRegistry(), address: netip.IPv4Unspecified(),
	}
	p.cache = cache.New(lateSource{p}, p.log)
	p.saver = newSaver(cfg, p.openedStore, p.clock, p.log)
	return p.tree(health.New(health.Config{Log: p.log}))
}
