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
	"github.com/nodeactor/nodeactor/supervision/core"
)

// Code makes the handler that takes the place of the worker at path, for one generation.
type Code func(path string, spec core.ChildSpec) supervision.Handler

// Blueprint is the tree that a node with this configuration runs: the same children, in the
// same shape, with the same windows and policies. Nothing of it is opened or started; only
// the keys it would have are made in the data directory. With code, which may be nil, each
// worker runs that instead of the product's own; members of pools bring their handlers anyway.
func Blueprint(cfg Config, code Code) (supervision.Spec, error) {
	id, err := identity.Load(filepath.Join(cfg.DataDir, "pki"))
	if err != nil {
		return supervision.Spec{}, err
	}
	p := &parts{
		cfg: cfg, log: slog.New(slog.DiscardHandler), clock: supervision.RealClock(), identity: id, beats: newHeartbeats(),
		metrics: prometheus.NewRegistry(), address: netip.IPv4Unspecified(),
	}
	p.cache = cache.New(lateSource{p}, p.log)
	root, err := p.tree(health.New(health.Config{Log: p.log}))
	if err == nil && code != nil {
		recode(&root, root.ID, code)
	}
	return root, err
}

// recode replaces the code of every worker at and below path.
func recode(s *supervision.Spec, path string, code Code) {
	if s.Kind == core.Worker {
		spec := s.ChildSpec
		s.Start = func() supervision.Handler { return code(path, spec) }
	}
	for i := range s.Children {
		recode(&s.Children[i], path+"/"+s.Children[i].ID, code)
	}
}
