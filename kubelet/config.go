package kubelet

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/nodeactor/nodeactor/kubelet/images"
	"github.com/nodeactor/nodeactor/kubelet/runtime"
)

// Defaults of Config.
const (
	// DefaultMaxPods bounds the pods of one node.
	DefaultMaxPods = 110
	// DefaultClusterDomain is the DNS suffix of the cluster.
	DefaultClusterDomain = "cluster.local"
	// DefaultRelistPeriod is the time between two relists; DefaultRelistThreshold is how old the last good one may be.
	DefaultRelistPeriod    = time.Second
	DefaultRelistThreshold = 180 * time.Second
)

// Config says who this node is and where things are.
type Config struct {
	// NodeName is the name of the Node object.
	NodeName string
	// DataDir is the node's data directory; pods live under DataDir/pods.
	DataDir string
	// NodeIPs are the host's addresses that others reach it at, primary first.
	NodeIPs []netip.Addr
	// Hostname is the host's own name, NodeName when empty.
	Hostname string
	// ListenAddr is host:port of the kubelet's server; the port is published in the Node's daemonEndpoints.
	ListenAddr string
	// PodCIDR is written into the Node's spec when it has none.
	PodCIDR string
	// MaxPods is DefaultMaxPods when 0.
	MaxPods int
	// ClusterDNS are the name servers of pods with dnsPolicy ClusterFirst; without any such pods use the host's.
	ClusterDNS []netip.Addr
	// ClusterDomain is DefaultClusterDomain when empty.
	ClusterDomain string
	// Version is the kubeletVersion of the Node, for instance v1.37.2; RuntimeVersion that of this build.
	Version, RuntimeVersion string
	// Labels and Taints are given to the Node when it registers.
	Labels map[string]string
	Taints []v1.Taint
	// RelistPeriod and RelistThreshold replace the defaults when positive.
	RelistPeriod, RelistThreshold time.Duration
}

// WithDefaults returns c with empty fields filled in.
func (c Config) WithDefaults() Config {
	if c.Hostname == "" {
		c.Hostname = c.NodeName
	}
	if c.MaxPods <= 0 {
		c.MaxPods = DefaultMaxPods
	}
	if c.ClusterDomain == "" {
		c.ClusterDomain = DefaultClusterDomain
	}
	if c.RelistPeriod <= 0 {
		c.RelistPeriod = DefaultRelistPeriod
	}
	if c.RelistThreshold <= 0 {
		c.RelistThreshold = DefaultRelistThreshold
	}
	return c
}

// PodsDir is where the pods' directories are.
func (c Config) PodsDir() string { return filepath.Join(c.DataDir, "pods") }

// Deps is what the kubelet works with. All but Heartbeat, Authorizer, ServingTLS and ProbeTLS are required.
type Deps struct {
	Config Config
	// Client speaks to the API; it may be unreachable at any time.
	Client kubernetes.Interface
	// Runtime runs pods; the kubelet calls Recover and Poll of it if it has them.
	Runtime runtime.Runtime
	// Images is the node's image store.
	Images Images
	// Network connects pods.
	Network Network
	// Ledger keeps the assigned pods over a restart without a server.
	Ledger Ledger
	// Heartbeat takes the renewals of the node's Lease; nil drops them.
	Heartbeat LeaseHeartbeat
	// ServingTLS is the configuration of the kubelet's server; it must ask for client certificates. nil: no server.
	ServingTLS *tls.Config
	// ProbeTLS is as whom the server is asked, now and then, whether it answers; nil asks as nobody.
	ProbeTLS *tls.Config
	// Authorizer decides who may use the server; nil allows members of system:masters and the API server only.
	Authorizer Authorizer
	// Metrics adds to what the server's /metrics shows; may be nil.
	Metrics http.Handler
	Log     *slog.Logger
}

// Images is the part of *images.Store the kubelet uses.
type Images interface {
	Pull(ctx context.Context, ref string, opts images.PullOptions) (images.Image, error)
	Import(ctx context.Context, r io.Reader) ([]string, error)
	Lookup(ref string) (images.Image, bool)
	List() []images.Image
	Remove(ref string) error
}

// Network is the part of *network.Network the kubelet uses.
type Network interface {
	// Setup makes what all pods of the node share; idempotent.
	Setup(ctx context.Context) error
	// Attach connects the network namespace at path; idempotent.
	Attach(ctx context.Context, podUID, path string) ([]netip.Addr, error)
	// Detach gives the pod's addresses back; nil when it has none.
	Detach(ctx context.Context, podUID string) error
	// Sweep detaches every pod live does not know.
	Sweep(ctx context.Context, live func(podUID string) bool) error
}

// Ledger is the part of *ledger.Ledger the kubelet uses.
type Ledger interface {
	Put(bucket, key string, v any) error
	Get(bucket, key string, v any) (bool, error)
	Delete(bucket, key string) error
	Each(bucket string, fn func(key string, raw []byte) error) error
}

// LeaseHeartbeat takes the renewals of a node's Lease without writing to the store: the API shows the latest renewal
// whenever the Lease or the Node is read.
type LeaseHeartbeat interface {
	// Renewed says that node was alive at t. It must not block. A generation that was replaced is not believed: the error is
	// supervision.ErrFenced then.
	Renewed(ctx context.Context, node string, t time.Time) error
}

// Authorizer decides whether an authenticated client may call the kubelet's server.
type Authorizer interface {
	// Authorize returns nil if user, member of groups, may use verb on the sub-resource of the node ("proxy", "stats",
	// "log", "metrics"); otherwise the reason why not.
	Authorize(ctx context.Context, user string, groups []string, verb, subresource string) error
}
