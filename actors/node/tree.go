package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/controllers"
	"github.com/nodeactor/nodeactor/actors/health"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
	"github.com/nodeactor/nodeactor/actors/scheduler"
	"github.com/nodeactor/nodeactor/cluster/identity"
	"github.com/nodeactor/nodeactor/kubelet"
	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

// leaseStale is the age of a heartbeat from which this node is not believed to be ready.
const leaseStale = 40 * time.Second

// group fills a supervisor's row.
func group(row string, children ...supervision.Spec) supervision.Spec {
	s := catalog.Row(row)
	s.Children = children
	return s
}

// worker fills a worker's row.
func worker(row string, start func() supervision.Handler) supervision.Spec {
	s := catalog.Row(row)
	s.Start = start
	return s
}

// tree is the whole node, in the order in which it starts. Each child may rely on the ones
// before it; see the catalog for what happens when one fails.
func (p *parts) tree(h *health.Health) (supervision.Spec, error) {
	ctl, err := p.controllers()
	if err != nil {
		return supervision.Spec{}, err
	}
	sched, err := p.scheduler()
	if err != nil {
		return supervision.Spec{}, err
	}
	klet, err := p.kubelet()
	if err != nil {
		return supervision.Spec{}, err
	}
	h.Also("pod-network", klet.NetworkProblem)
	h.Note("store-writes", p.storeNote)
	h.Note("encrypted-objects", p.sealedNote)
	p.judgeEncryption(h)
	extra := map[string]http.Handler{}
	if p.cfg.FaultInjection {
		extra[faultsPath] = http.HandlerFunc(p.injectFault)
	}
	one := []supervision.Spec{cache.Spec(p.cache), sched, worker("health", h.Child)}
	if p.saver.every > 0 {
		one = append(one, worker("snapshots", func() supervision.Handler { return archive{p.saver} }))
	}
	listeners := []supervision.Spec{
		worker("listener", p.listenerChild),
		worker("socket", func() supervision.Handler { return p.socketChild(klet.Images(), h) }),
	}
	if p.cfg.EtcdAddr != "off" {
		listeners = append(listeners, worker("etcd-listener", p.etcdChild))
	}
	root := group("node",
		group("store", worker("engine", p.engineChild), worker("maintenance", p.maintenanceChild)),
		group("cluster", worker("identity", p.identityChild)),
		group("api",
			worker("server", func() supervision.Handler { return p.serverChild(h, extra) }),
			worker("bootstrap", p.bootstrapChild),
			group("listeners", listeners...)),
		group("core", one...),
		group("controllers", ctl...),
		klet.Spec(),
	)
	err = catalog.Apply(&root, p.cfg.FaultPolicies)
	return root, err
}

func (p *parts) controllers() ([]supervision.Spec, error) {
	p.breaker = kube.NewBreaker(p.cache, p.clock)
	config := p.clientConfig("system:kube-controller-manager", identity.MastersGroup)
	config.Transport = p.breaker.Guard(config.Transport)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	meta, err := metadata.NewForConfig(metadata.ConfigFor(config))
	if err != nil {
		return nil, err
	}
	counts, err := kube.NewMetrics(p.metrics)
	if err != nil {
		return nil, err
	}
	groups, err := p.replicaGroups()
	if err != nil {
		return nil, err
	}
	p.events = kube.NewRecorder(client.CoreV1(), p.clock, p.log)
	p.saver.events = p.events.For("nodeactor")
	deps := controllers.Deps{
		Cache: p.cache, Client: client, Metadata: meta, Clock: p.clock, Log: p.log, RootCA: p.identity.CAPEM, Metrics: counts, Events: p.events, Heartbeats: p.beats,
		Breaker: p.breaker, InjectFaults: p.cfg.FaultInjection, ReplicaGroups: groups,
	}
	deps.Further, err = p.operators(deps)
	return controllers.Specs(deps), err
}

func (p *parts) scheduler() (supervision.Spec, error) {
	client, err := p.client("system:kube-scheduler", identity.MastersGroup)
	if err != nil {
		return supervision.Spec{}, err
	}
	return scheduler.Spec(scheduler.Deps{Source: scheduler.FromCache(p.cache), Client: client, NodeReady: p.nodeReady}), nil
}

// nodeReady believes a node's own word, but not that of this host when its kubelet has
// stopped to send heartbeats.
func (p *parts) nodeReady(n *v1.Node, now time.Time) bool {
	if last, ok := p.beats.Last(n.Name); ok && now.Sub(last) > leaseStale {
		return false
	}
	for _, c := range n.Status.Conditions {
		if c.Type == v1.NodeReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}

func (p *parts) kubelet() (*kubelet.Kubelet, error) {
	client, err := p.client(identity.NodeUserPrefix+p.cfg.NodeName, identity.NodesGroup, identity.MastersGroup)
	if err != nil {
		return nil, err
	}
	serving, err := p.identity.KubeletServing(p.cfg.NodeName, identity.KubeletHosts(p.cfg.NodeName, p.address.AsSlice(), addressOf(p.cfg.KubeletAddr)))
	if err != nil {
		return nil, err
	}
	serving = serving.Clone()
	serving.ClientCAs = p.identity.CAPool()
	serving.ClientAuth = verifyIfGiven
	probe, err := p.identity.KubeletClientTLS()
	if err != nil {
		return nil, err
	}
	return kubelet.New(kubelet.Deps{
		Config: kubelet.Config{
			NodeName: p.cfg.NodeName, DataDir: p.cfg.DataDir, NodeIPs: []netip.Addr{p.address}, Hostname: p.cfg.NodeName,
			ListenAddr: expandHost(p.cfg.KubeletAddr), PodCIDR: p.cfg.PodCIDR, MaxPods: p.cfg.MaxPods,
			Version: kubeVersion(), RuntimeVersion: p.cfg.Version,
		},
		Client: client, Runtime: p.engine, Images: p.images, Network: p.network, Ledger: p.ledger,
		Heartbeat: p.beats, ServingTLS: serving, ProbeTLS: probe, Log: p.log,
	}), nil
}

// helperPath finds the runtime helper beside the daemon.
func helperPath() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("cannot find %s: %w", helperBinary, err)
	}
	path := filepath.Join(filepath.Dir(self), helperBinary)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("cannot find %s beside %s; build it with 'make build' and install both in one folder", helperBinary, self)
	}
	return path, nil
}

// storeRead is a linearizable read of whatever store is current.
func (p *parts) storeRead(ctx context.Context) error {
	if err := p.ailing(); err != nil {
		return err
	}
	s, _ := p.store.get()
	if s == nil {
		return ErrNotUp
	}
	err := s.Healthy(ctx)
	if errors.Is(err, store.ErrAway) {
		return health.Told{Reason: err}
	}
	return err
}
