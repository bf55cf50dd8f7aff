package node

import (
	"log/slog"
	"net/netip"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/health"
	"github.com/nodeactor/nodeactor/cluster/identity"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

// TestEveryRowHasItsConstructor holds the tree and the catalog to each other: every row is
// used, every child comes from a row, and the whole tree is valid.
func TestEveryRowHasItsConstructor(t *testing.T) {
	id, err := identity.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{DataDir: t.TempDir(), NodeName: "n", PodCIDR: "10.1.0.0/24"}.WithDefaults()
	p := &parts{
		cfg: cfg, log: slog.New(slog.DiscardHandler), clock: supervision.RealClock(), identity: id, beats: newHeartbeats(),
		metrics: prometheus.NewRegistry(), address: netip.MustParseAddr("127.0.0.1"),
	}
	p.cache = cache.New(lateSource{p}, p.log)
	p.saver = newSaver(cfg, p.openedStore, p.clock, p.log)
	root, err := p.tree(health.New(health.Config{Log: p.log}))
	if err != nil {
		t.Fatal(err)
	}
	if err := root.Validate(); err != nil {
		t.Fatal(err)
	}
	unused := map[string]bool{}
	for _, e := range catalog.Rows {
		unused[e.Spec.Row] = true
	}
	known := map[string]bool{}
	for row := range unused {
		known[row] = true
	}
	var visit func(s *supervision.Spec)
	visit = func(s *supervision.Spec) {
		if !known[s.Row] {
			t.Errorf("child %s is not of the catalog: row %q", s.ID, s.Row)
		}
		delete(unused, s.Row)
		for i := range s.Children {
			visit(&s.Children[i])
		}
		if s.Template != nil {
			visit(s.Template)
		}
	}
	visit(&root)
	for row := range unused {
		t.Errorf("row %s of the catalog has no constructor", row)
	}
}
