package kubelet

import (
	"os"
	"path"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/nodeactor/nodeactor/kubelet/objects"
	"github.com/nodeactor/nodeactor/kubelet/pod"
	"github.com/nodeactor/nodeactor/kubelet/podspec"
	"github.com/nodeactor/nodeactor/kubelet/runtime"
	"github.com/nodeactor/nodeactor/kubelet/volumes"
	"github.com/nodeactor/nodeactor/supervision"
)

// resolvConf is the host's resolver configuration.
const resolvConf = "/etc/resolv.conf"

// shared is what the children of one kubelet have in common. Its fields are set before the first child starts or guard
// themselves.
type shared struct {
	Deps
	table     *pod.Table
	env       *pod.Env
	health    *health
	network   atomic.Pointer[string] // why the network is not set up; nil when it is
	services  services
	node      atomic.Pointer[v1.Node] // this node as the API last showed it
	puller    atomic.Pointer[supervision.Ref]
	owner     atomic.Pointer[supervision.Ref]
	pods      atomic.Pointer[supervision.Pool]
	facts     machineFacts
	recovered recovery
	// leftover is what the runtime had, by pod UID, when the kubelet started.
	leftover atomic.Pointer[map[string]*runtime.PodRecord]
}

// recovery is the runtime's recovery, which happens once per process.
type recovery struct {
	mu   sync.Mutex
	done bool
}

func newShared(d Deps) *shared {
	d.Config = d.Config.WithDefaults()
	s := &shared{Deps: d, table: pod.NewTable(), facts: readMachine(d.Config.DataDir)}
	s.health = newHealth(d.Config.RelistThreshold)
	waiting := "the network has not been set up yet"
	s.network.Store(&waiting)
	source := objects.FromClient(d.Client)
	s.env = &pod.Env{
		NodeName: d.Config.NodeName, Client: d.Client, Runtime: d.Runtime, Images: d.Images, Network: d.Network,
		Volumes: volumes.New(d.Config.PodsDir(), source, s.host), Objects: source, Ledger: d.Ledger, Table: s.table,
		Host: s.host, Services: s.services.list, Events: record.NewEventCorrelator(wallClock{}),
		Puller: func() supervision.Ref { return load(&s.puller) }, Owner: func() supervision.Ref { return load(&s.owner) },
	}
	return s
}

func load(p *atomic.Pointer[supervision.Ref]) supervision.Ref {
	if r := p.Load(); r != nil {
		return *r
	}
	return supervision.Ref{}
}

// host is what pods learn about this node.
func (s *shared) host() podspec.Host {
	own, err := os.ReadFile(resolvConf)
	if err != nil {
		own = nil // no resolver: pods that ask for the host's get none either
	}
	h := podspec.Host{Name: s.Config.Hostname, ClusterDomain: s.Config.ClusterDomain, ResolvConf: string(own),
		Allocatable: s.facts.allocatable(s.Config.MaxPods), MemoryBytes: s.facts.memory}
	for _, ip := range s.Config.NodeIPs {
		h.IPs = append(h.IPs, ip.String())
	}
	for _, ip := range s.Config.ClusterDNS {
		h.ClusterDNS = append(h.ClusterDNS, ip.String())
	}
	return h
}

// ready is nil when this node can run pods; otherwise it says why not.
func (s *shared) ready(now clockReading) error {
	if err := s.health.err(now); err != nil {
		return err
	}
	if why := s.network.Load(); why != nil {
		return notReady("container runtime network not ready: " + *why)
	}
	return nil
}

type notReady string

// Error is the text.
func (e notReady) Error() string { return string(e) }

// toPods sends msg to the actor of the pod uid.
func (s *shared) toPods(uid string, msg any) {
	if p := s.pods.Load(); p != nil {
		(*p).Send(uid, msg)
	}
}

// sibling is the path of another child of the kubelet.
func sibling(ctx supervision.Context, id string) string { return path.Join(path.Dir(ctx.Path()), id) }
