package node

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/cluster/identity"
	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
	"github.com/nodeactor/nodeactor/supervision/core"
	"github.com/nodeactor/nodeactor/supervision/serve"
	"github.com/nodeactor/nodeactor/test/loopback"
)

// ported is a node with an identity and a store, and no more.
func ported(t *testing.T) *parts {
	t.Helper()
	dir := t.TempDir()
	id, err := identity.Load(filepath.Join(dir, "pki"))
	if err != nil {
		t.Fatal(err)
	}
	p := &parts{
		cfg: Config{DataDir: dir, NodeName: "n", APIAddr: "0.0.0.0:0", EtcdAddr: "127.0.0.1:0"}.WithDefaults(), log: slog.New(slog.DiscardHandler),
		clock: supervision.RealClock(), identity: id, address: netip.MustParseAddr("127.0.0.1"),
	}
	if p.probeTLS, err = id.AdminTLS(); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(context.Background(), store.Config{Dir: filepath.Join(dir, "store"), NodeName: "n", Log: p.log})
	if err != nil {
		t.Fatal(err)
	}
	p.store.set(s)
	t.Cleanup(p.closeStore)
	return p
}

func runListeners(t *testing.T, p *parts, children ...supervision.Spec) {
	t.Helper()
	var err error
	if p.sys, err = supervision.New(supervision.Config{Log: p.log}); err != nil {
		t.Fatal(err)
	}
	if err := p.sys.Start(group("listeners", children...)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.sys.Stop(context.Background()) })
}

// TestPortsAnswerThemselves: the product's ports pass their own requests, with TLS and the right client, also while there is no API server
// and no engine.
func TestPortsAnswerThemselves(t *testing.T) {
	p := ported(t)
	runListeners(t, p, worker("listener", p.listenerChild), worker("etcd-listener", p.etcdChild))
	check := func(when string) {
		t.Helper()
		for _, n := range p.sys.Inspect().Root.Children {
			if n.State != core.Running || n.Generation != 1 || n.LastBeat.IsZero() {
				t.Errorf("%s: %s is %s in generation %d", when, n.Path, n.State, n.Generation)
			}
		}
	}
	check("after the start")
	s, _ := p.store.get()
	if err := s.Rest(context.Background()); err != nil {
		t.Fatal(err)
	}
	p.sys.Restart("listeners/etcd-listener")
	deadline := time.Now().Add(10 * time.Second)
	for n := (supervision.Node{}); n.Generation != 2 || n.State != core.Running; n = p.sys.Inspect().Root.Children[1] {
		if time.Now().After(deadline) {
			t.Fatalf("without an engine the etcd port is %s: %v", n.State, p.sys.Faults().Recent())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestListenerThatNeverAnswers: the API's port, which makes the handshake and then never answers, is replaced on the same address.
func TestListenerThatNeverAnswers(t *testing.T) {
	p := ported(t)
	addr := loopback.Free(t)
	config, err := p.identity.ServerTLS(identity.APIServerHosts("n", nil))
	if err != nil {
		t.Fatal(err)
	}
	var lives atomic.Int32
	spec := catalog.Row("listener")
	spec.StopTimeout = time.Second
	spec.Start = func() supervision.Handler {
		var answer http.Handler = http.HandlerFunc(p.answer)
		if lives.Add(1) == 2 {
			answer = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		}
		return serve.New(serve.Config{
			Network: "tcp", Addr: addr, Probe: p.probeAPI(), ProbeEvery: 50 * time.Millisecond, ProbeWithin: time.Second,
			Serve: func(ctx context.Context, l net.Listener) error { return p.serveHTTP(ctx, l, config, answer) },
		})
	}
	runListeners(t, p, spec)
	if err := p.sys.Restart("listeners/listener"); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for n := (supervision.Node{}); n.Generation != 3 || n.State != core.Running; n = p.sys.Inspect().Root.Children[0] {
		if time.Now().After(deadline) {
			t.Fatalf("it is %s in generation %d", n.State, n.Generation)
		}
		time.Sleep(5 * time.Millisecond)
	}
	faults := p.sys.Faults().Recent()
	if len(faults) != 1 || faults[0].Kind != core.Hang || faults[0].Generation != 2 || !strings.Contains(string(faults[0].Stack), "serveHTTP") {
		t.Errorf("faults %v", faults)
	}
}
