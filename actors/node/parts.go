package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/nodeactor/nodeactor/actors/apiserver"
	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
	"github.com/nodeactor/nodeactor/cluster/identity"
	"github.com/nodeactor/nodeactor/kubelet/images"
	"github.com/nodeactor/nodeactor/kubelet/network"
	kruntime "github.com/nodeactor/nodeactor/kubelet/runtime"
	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/store/encryption"
	"github.com/nodeactor/nodeactor/store/ledger"
	"github.com/nodeactor/nodeactor/supervision"
)

// ErrNotUp is returned when a part is asked for that is not running at the moment.
var ErrNotUp = errors.New("not running at the moment")

// parts is what the children of one node share: what lives as long as the process, and the
// current generation of what is restarted.
type parts struct {
	cfg      Config
	boot     string // of which kind it is
	log      *slog.Logger
	clock    supervision.Clock
	sys      *supervision.System
	identity *identity.Identity
	// encryption is how objects are stored; nil = as they are.
	encryption *encryption.Encryption
	// probeTLS is as whom the ports ask themselves whether they answer.
	probeTLS *tls.Config
	ledger   *ledger.Ledger
	engine   *kruntime.Engine
	images   *images.Store
	network  *network.Network
	cache    *cache.Cache
	saver    *saver
	beats    *heartbeats
	address  netip.Addr

	metrics *prometheus.Registry
	events  *kube.Recorder
	breaker *kube.Breaker
	root    supervision.Spec

	// refused takes the reason for which a node must not start.
	refused chan error
	// absent is why a store elsewhere is waited for.
	absent absence
	// damage is why the store is not used, and unhealthy who says so; nil when it is.
	damage    *damage
	unhealthy http.Handler

	store  current[store.Store]
	server current[apiserver.Server]
}

// current holds the live generation of a part.
type current[T any] struct {
	mu  sync.RWMutex
	v   *T
	gen int
}

// set makes v current and returns a function that takes it away again.
func (c *current[T]) set(v *T) (unset func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.v = v
	c.gen++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.v == v {
			c.v = nil
		}
	}
}

func (c *current[T]) get() (*T, int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.v, c.gen
}

// openParts opens what lives as long as the process. What it opened is closed on an error.
func openParts(cfg Config, log *slog.Logger, clock supervision.Clock) (*parts, error) {
	p := &parts{cfg: cfg, log: log, clock: clock, beats: newHeartbeats(), refused: make(chan error, 1)}
	p.saver = newSaver(cfg, p.openedStore, clock, log)
	if err := p.open(); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// openedStore is the store, or nil while it is not open yet.
func (p *parts) openedStore() *store.Store {
	s, _ := p.store.get()
	return s
}

func (p *parts) open() (err error) {
	cfg := p.cfg
	if p.address, err = nodeAddress(cfg); err != nil {
		return err
	}
	if p.identity, err = identity.Load(filepath.Join(cfg.DataDir, "pki"), identity.WithNow(p.clock.Now), identity.WithLog(p.log)); err != nil {
		return err
	}
	if p.probeTLS, err = p.identity.AdminTLS(); err != nil {
		return err
	}
	if err = p.openEncryption(); err != nil {
		return err
	}
	if p.ledger, err = ledger.Open(filepath.Join(cfg.DataDir, "ledger.db")); err != nil {
		return err
	}
	if err = p.openKubelet(); err != nil {
		return err
	}
	p.cache = cache.New(lateSource{p}, p.log)
	return nil
}

func (p *parts) openKubelet() (err error) {
	if p.engine, err = openEngine(p.cfg, p.ledger, p.log, p.clock); err != nil {
		return err
	}
	p.images, err = images.Open(filepath.Join(p.cfg.DataDir, "images"), p.ledger, p.log, images.WithClock(p.clock))
	if err != nil {
		return err
	}
	p.cfg.PodCIDR, p.network, err = openNetwork(p.cfg, p.ledger, p.log)
	return err
}

func openEngine(cfg Config, l *ledger.Ledger, log *slog.Logger, clock supervision.Clock) (*kruntime.Engine, error) {
	helper, err := helperPath()
	if err != nil {
		return nil, err
	}
	return kruntime.Open(kruntime.Config{
		Dir: filepath.Join(cfg.DataDir, "run"), HelperPath: helper, CgroupRoot: cfg.CgroupRoot, Ledger: l, Clock: clock, Log: log,
	})
}

// openNetwork also returns the range of the pods, chosen where none was given.
func openNetwork(cfg Config, l *ledger.Ledger, log *slog.Logger) (string, *network.Network, error) {
	cidr, err := podRange(cfg, l)
	if err != nil {
		return "", nil, err
	}
	bridge, prefix := network.Names(cfg.DataDir)
	n, err := network.Open(network.Config{Bridge: bridge, Prefix: prefix, PodCIDR: cidr, Ledger: l, Log: log})
	return cidr.String(), n, err
}

func podRange(cfg Config, l *ledger.Ledger) (netip.Prefix, error) {
	if cfg.PodCIDR == "" {
		return network.ChooseCIDR(cfg.DataDir, l)
	}
	return netip.ParsePrefix(cfg.PodCIDR)
}

func (p *parts) close() {
	p.closeStore()
	if p.encryption != nil {
		p.encryption.Close()
	}
	if p.images != nil {
		p.images.Close()
	}
	if p.network != nil {
		p.logClose("network", p.network.Close())
	}
	if p.engine != nil {
		p.logClose("runtime", p.engine.Close())
	}
	if p.ledger != nil {
		p.logClose("ledger", p.ledger.Close())
	}
}

func (p *parts) logClose(what string, err error) {
	if err != nil {
		p.log.Error("cannot close "+what, "err", err)
	}
}

// nodeAddress is the address that others reach this host at.
func nodeAddress(cfg Config) (netip.Addr, error) {
	if cfg.AdvertiseAddress != "" {
		return netip.ParseAddr(cfg.AdvertiseAddress)
	}
	for _, addr := range []string{cfg.KubeletAddr, cfg.APIAddr} {
		if ap := netip.MustParseAddrPort(expandHost(addr)); !ap.Addr().IsUnspecified() {
			return ap.Addr(), nil
		}
	}
	// Connecting a datagram socket sends nothing; it only asks for the route.
	c, err := net.Dial("udp4", "192.0.2.1:9")
	if err != nil {
		return netip.MustParseAddr("127.0.0.1"), nil
	}
	defer c.Close()
	return netip.MustParseAddrPort(c.LocalAddr().String()).Addr(), nil
}

// client makes a client of the API that outlives restarts of the API server.
func (p *parts) client(user string, groups ...string) (kubernetes.Interface, error) {
	return kubernetes.NewForConfig(p.clientConfig(user, groups...))
}

func (p *parts) clientConfig(user string, groups ...string) *rest.Config {
	return &rest.Config{
		Host: "https://in-process", QPS: -1, UserAgent: "nodeactor",
		Transport: &lateTransport{p: p, user: user, groups: groups},
		ContentConfig: rest.ContentConfig{
			ContentType:        runtime.ContentTypeProtobuf,
			AcceptContentTypes: runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON,
		},
	}
}

// lateTransport sends each request to the API server that is current.
type lateTransport struct {
	p      *parts
	user   string
	groups []string

	mu  sync.Mutex
	gen int
	rt  http.RoundTripper
}

// RoundTrip fails with ErrNotUp while there is no API server.
func (t *lateTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	rt, err := t.current()
	if err != nil {
		return nil, err
	}
	return rt.RoundTrip(r)
}

func (t *lateTransport) current() (http.RoundTripper, error) {
	s, gen := t.p.server.get()
	if s == nil {
		return nil, fmt.Errorf("cannot call the API server: %w", ErrNotUp)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rt == nil || t.gen != gen {
		t.rt, t.gen = s.InProcess(t.user, t.groups...).Transport, gen
	}
	return t.rt, nil
}

// lateSource reads from the store that is current, and is empty while there is none.
type lateSource struct{ p *parts }

func (l lateSource) source() cache.Source {
	if s, _ := l.p.store.get(); s != nil {
		return cache.FromStore(s)
	}
	return nil
}

func (l lateSource) Revision() int64 {
	if s := l.source(); s != nil {
		return s.Revision()
	}
	return 0
}

func (l lateSource) Get(key string) (cache.Record, bool) {
	if s := l.source(); s != nil {
		return s.Get(key)
	}
	return cache.Record{}, false
}

func (l lateSource) List(prefix string) ([]cache.Record, int64) {
	if s := l.source(); s != nil {
		return s.List(prefix)
	}
	return nil, 0
}

func (l lateSource) Follow(prefix string, after int64) cache.Stream {
	if s := l.source(); s != nil {
		return s.Follow(prefix, after)
	}
	return lostStream{}
}

// lostStream tells its reader to open another one.
type lostStream struct{}

func (lostStream) Poll(context.Context) ([]cache.SourceEvent, error) { return nil, cache.ErrSourceLost }
func (lostStream) Signal() <-chan struct{}                           { return nil }
func (lostStream) Revision() int64                                   { return 0 }
func (lostStream) Close()                                            {}

// heartbeats keeps when each node was last heard of; renewals never reach the store.
type heartbeats struct {
	mu sync.Mutex
	at map[string]time.Time
}

func newHeartbeats() *heartbeats { return &heartbeats{at: map[string]time.Time{}} }

// Renewed implements kubelet.LeaseHeartbeat.
func (h *heartbeats) Renewed(ctx context.Context, node string, t time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := supervision.CheckFence(ctx); err != nil {
		return err
	}
	h.at[node] = t
	return nil
}

// Last is when node was last heard of; false when it never was.
func (h *heartbeats) Last(node string) (time.Time, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t, ok := h.at[node]
	return t, ok
}
