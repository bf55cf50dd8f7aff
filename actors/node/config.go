package node

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/nodeactor/nodeactor/actors/operator/served"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

// Defaults of a node that is told nothing.
const (
	DefaultDataDir     = "/var/lib/nodeactor"
	DefaultAPIAddr     = "0.0.0.0:6443"
	DefaultKubeletAddr = "0.0.0.0:10250"
	DefaultEtcdAddr    = "127.0.0.1:2379"
	DefaultCgroupRoot  = "/nodeactor"
	DefaultServiceCIDR = "10.96.0.0/16"
	// DefaultMaxPods is upstream's default of pods on one node.
	DefaultMaxPods = 110
	// DefaultSnapshotEvery is the time between two automatic snapshots, DefaultSnapshotKeep how many are kept.
	DefaultSnapshotEvery = "1h"
	DefaultSnapshotKeep  = 24
	// KubeconfigFile is the administrator's kubeconfig inside the data directory.
	KubeconfigFile = "admin.kubeconfig"
	// SocketFile is the node's local socket inside the data directory (0600).
	SocketFile = "nodeactor.sock"

	// maxPort is the highest port there is.
	maxPort = 65535
)

// ErrConfig is returned when a setting cannot be honoured; the message names the
// setting and the remedy.
var ErrConfig = errors.New("invalid configuration")

// Config is everything a node is told. The zero value of a field means its default.
type Config struct {
	// DataDir holds all state; 0700, one node per directory.
	DataDir string `json:"dataDir,omitempty"`
	// NodeName is the Node object's name; the host name in lower case by default. A data
	// directory keeps the name of its node.
	NodeName string `json:"nodeName,omitempty"`
	// APIAddr, KubeletAddr and EtcdAddr are host:port to listen on. An empty EtcdAddr
	// in a file keeps the default; "off" switches that listener off.
	APIAddr     string `json:"apiAddr,omitempty"`
	KubeletAddr string `json:"kubeletAddr,omitempty"`
	EtcdAddr    string `json:"etcdAddr,omitempty"`
	// EtcdWrites lets members of system:masters write through the etcd API, past admission.
	EtcdWrites bool `json:"etcdWrites,omitempty"`
	// CgroupRoot is the parent of all pod cgroups, an absolute cgroup path; /nodeactor by
	// default, with a hash of the data directory when that is not the default one.
	CgroupRoot string `json:"cgroupRoot,omitempty"`
	// PodCIDR and ServiceCIDR are IPv4 prefixes for pods of this node and for Services. An
	// unset PodCIDR is chosen at the first start, 10.244.0.0/24 where that is free, and kept.
	PodCIDR     string `json:"podCIDR,omitempty"`
	ServiceCIDR string `json:"serviceCIDR,omitempty"`
	// AdvertiseAddress is the address others reach this host at; that of the default
	// route by default.
	AdvertiseAddress string `json:"advertiseAddress,omitempty"`
	// MaxPods bounds the pods of this node.
	MaxPods int `json:"maxPods,omitempty"`
	// StoreEndpoints are the https URLs, separated by commas, of the members of an etcd cluster that holds the objects instead of this
	// node's own directory. The files say who has signed the members' certificates, and as whom the node goes there.
	StoreEndpoints string `json:"storeEndpoints,omitempty"`
	StoreCAFile    string `json:"storeCAFile,omitempty"`
	StoreCertFile  string `json:"storeCertFile,omitempty"`
	StoreKeyFile   string `json:"storeKeyFile,omitempty"`
	// StoreQuota is what the store's file may hold, as a quantity such as 8Gi. A store that holds more takes deletions, and updates that do
	// not grow.
	StoreQuota string `json:"storeQuota,omitempty"`
	// SnapshotEvery is the time between two automatic snapshots of the store, 1h by default; off
	// for none. A store that was not written to is not saved again.
	SnapshotEvery string `json:"snapshotEvery,omitempty"`
	// SnapshotKeep is how many of the newest automatic snapshots are kept, beside one for each of
	// the last seven days; 24 by default.
	SnapshotKeep int `json:"snapshotKeep,omitempty"`
	// ReplicaGroups is what is done about ReplicaGroups: manage, without-bursts or observe.
	ReplicaGroups string `json:"replicaGroups,omitempty"`
	// LogLevel is debug, info, warn or error.
	LogLevel string `json:"logLevel,omitempty"`
	// AcceptDataLoss lets this start make a damaged store anew from its newest good snapshot. It is not read from a file: it is meant for
	// one start.
	AcceptDataLoss bool `json:"-"`
	// FaultInjection opens /debug/faults to members of system:masters, for drills.
	FaultInjection bool `json:"faultInjection,omitempty"`
	// FaultPolicies override what the catalog says of single children.
	FaultPolicies []catalog.Override `json:"faultPolicies,omitempty"`
	// EncryptionProviderConfig is the file of an EncryptionConfiguration (apiserver.config.k8s.io/v1), which says how objects are
	// encrypted in the store; none by default. Changes of the file are taken in while the node runs.
	EncryptionProviderConfig string `json:"encryptionProviderConfig,omitempty"`
	// PprofAddr serves Go profiles on a loopback address; off by default.
	PprofAddr string `json:"pprofAddr,omitempty"`
	// Operators run in the node beside its own controllers, each with its kind in the API. They come with the program, not from a file.
	Operators []*served.Operator `json:"-"`
	// Version is this build's version, shown by the API and in logs.
	Version string `json:"-"`
}

// WithDefaults returns c with every unset field filled in.
func (c Config) WithDefaults() Config {
	set := func(p *string, v string) {
		if *p == "" {
			*p = v
		}
	}
	c = c.externalDefaults()
	set(&c.DataDir, DefaultDataDir)
	set(&c.APIAddr, DefaultAPIAddr)
	set(&c.KubeletAddr, DefaultKubeletAddr)
	set(&c.EtcdAddr, DefaultEtcdAddr)
	set(&c.ServiceCIDR, DefaultServiceCIDR)
	set(&c.SnapshotEvery, DefaultSnapshotEvery)
	set(&c.LogLevel, "info")
	set(&c.ReplicaGroups, ManageReplicaGroups)
	set(&c.StoreQuota, DefaultStoreQuota)
	set(&c.Version, "unknown")
	if c.MaxPods == 0 {
		c.MaxPods = DefaultMaxPods
	}
	if c.SnapshotKeep == 0 {
		c.SnapshotKeep = DefaultSnapshotKeep
	}
	if abs, err := filepath.Abs(c.DataDir); err == nil {
		c.DataDir = abs
	}
	for _, file := range []*string{&c.EncryptionProviderConfig, &c.StoreCAFile, &c.StoreCertFile, &c.StoreKeyFile} {
		if abs, err := filepath.Abs(*file); err == nil && *file != "" {
			*file = abs
		}
	}
	set(&c.CgroupRoot, defaultCgroupRoot(c.DataDir))
	if c.NodeName == "" {
		c.NodeName = defaultNodeName(c.DataDir)
	}
	return c
}

// defaultNodeName is the name the directory's node has, or that of the host.
func defaultNodeName(dataDir string) string {
	if old, ok := recorded(dataDir); ok {
		return old.NodeName
	}
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "nodeactor-node"
	}
	return strings.ToLower(name)
}

// Validate reports the first setting that cannot be honoured, wrapped in ErrConfig.
// Call it on a Config that went through WithDefaults.
func (c Config) Validate() error {
	for _, check := range []func() error{c.validName, c.validAddrs, c.validCIDRs, c.validStore, c.validRest} {
		if err := check(); err != nil {
			return fmt.Errorf("%w: %w", ErrConfig, err)
		}
	}
	return nil
}

func (c Config) validName() error {
	if msgs := validation.IsDNS1123Subdomain(c.NodeName); len(msgs) > 0 {
		return fmt.Errorf("nodeName %q is not a DNS name (%s); choose one with --node-name", c.NodeName, msgs[0])
	}
	return nil
}

func (c Config) validAddrs() error {
	seen := map[string]netip.AddrPort{}
	for _, a := range []struct{ name, addr string }{
		{"apiAddr", c.APIAddr}, {"kubeletAddr", c.KubeletAddr}, {"etcdAddr", c.EtcdAddr}, {"pprofAddr", c.PprofAddr},
	} {
		if a.addr == "off" && a.name == "etcdAddr" || a.addr == "" && a.name == "pprofAddr" {
			continue
		}
		addr, err := listenAddr(a.name, a.addr)
		if err != nil {
			return err
		}
		for other, taken := range seen {
			if collide(addr, taken) {
				return fmt.Errorf("%s %s and %s %s are one port of this host; choose distinct ones", a.name, a.addr, other, taken)
			}
		}
		seen[a.name] = addr
	}
	if c.PprofAddr != "" && !netip.MustParseAddrPort(expandHost(c.PprofAddr)).Addr().IsLoopback() {
		return fmt.Errorf("pprofAddr %q is not a loopback address; profiles are served without authentication", c.PprofAddr)
	}
	return nil
}

// listenAddr is the address of a listener. One whose port the system chooses would be another at each start, and no client could be told.
func listenAddr(name, addr string) (netip.AddrPort, error) {
	ap, err := netip.ParseAddrPort(expandHost(addr))
	if err == nil && ap.Port() != 0 {
		return ap, nil
	}
	if _, port, splitErr := net.SplitHostPort(addr); splitErr == nil {
		if n, numErr := strconv.Atoi(port); numErr == nil && (n < 1 || n > maxPort) {
			return ap, fmt.Errorf("%s %q has the port %s; ports are between 1 and %d", name, addr, port, maxPort)
		}
	}
	return ap, fmt.Errorf("%s %q is not HOST:PORT with a numeric host (for example 0.0.0.0:6443)", name, addr)
}

// collide tells whether two listeners would want the same port: on one address, or on every address and one of them.
func collide(a, b netip.AddrPort) bool {
	return a.Port() == b.Port() && (a.Addr() == b.Addr() || a.Addr().IsUnspecified() || b.Addr().IsUnspecified())
}

// expandHost lets ":6443" mean every address, as net.Listen does.
func expandHost(addr string) string {
	if host, port, err := net.SplitHostPort(addr); err == nil && host == "" {
		return "0.0.0.0:" + port
	}
	return addr
}

func (c Config) validCIDRs() error {
	services, err := parseCIDR("serviceCIDR", c.ServiceCIDR, 28)
	if err != nil || c.PodCIDR == "" {
		return err
	}
	pods, err := parseCIDR("podCIDR", c.PodCIDR, 28)
	if err != nil {
		return err
	}
	if pods.Overlaps(services) {
		return fmt.Errorf("podCIDR %s and serviceCIDR %s overlap; choose distinct ranges", pods, services)
	}
	return nil
}

func parseCIDR(name, s string, maxBits int) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil || !p.Addr().Is4() || p.Masked() != p {
		return netip.Prefix{}, fmt.Errorf("%s %q is not an IPv4 network (for example 10.244.0.0/24)", name, s)
	}
	if p.Bits() > maxBits {
		return netip.Prefix{}, fmt.Errorf("%s %q is too small; it needs at least a /%d", name, s, maxBits)
	}
	return p, nil
}

func (c Config) validRest() error {
	if c.EtcdWrites && c.EtcdAddr == "off" {
		return errors.New("etcdWrites is on and etcdAddr is off; set an address with --etcd-addr, or leave --etcd-writes out")
	}
	if !strings.HasPrefix(c.CgroupRoot, "/") || filepath.Clean(c.CgroupRoot) != c.CgroupRoot || c.CgroupRoot == "/" {
		return fmt.Errorf("cgroupRoot %q is not an absolute cgroup path such as /nodeactor", c.CgroupRoot)
	}
	if c.MaxPods < 1 || c.MaxPods > 1000 {
		return fmt.Errorf("maxPods %d is not between 1 and 1000", c.MaxPods)
	}
	if c.AdvertiseAddress != "" {
		if a, err := netip.ParseAddr(c.AdvertiseAddress); err != nil || a.IsUnspecified() {
			return fmt.Errorf("advertiseAddress %q is not an address others can reach", c.AdvertiseAddress)
		}
	}
	if _, err := c.quotaBytes(); err != nil {
		return err
	}
	if err := c.validSnapshots(); err != nil {
		return err
	}
	if err := c.validReplicaGroups(); err != nil {
		return err
	}
	if _, err := c.Level(); err != nil {
		return err
	}
	return nil
}

func (c Config) validSnapshots() error {
	if d, err := snapshotPeriod(c.SnapshotEvery); err != nil || d != 0 && d < time.Second {
		return fmt.Errorf("snapshotEvery %q is not a duration such as 1h or 30m, of a second at least, or off", c.SnapshotEvery)
	}
	if c.SnapshotKeep < 1 {
		return fmt.Errorf("snapshotKeep %d is not a number from 1 on; --snapshot-every off saves none", c.SnapshotKeep)
	}
	return nil
}

// snapshotPeriod is what SnapshotEvery says, 0 when no snapshot is saved by itself.
func snapshotPeriod(s string) (time.Duration, error) {
	if s == "off" || s == "0" {
		return 0, nil
	}
	return time.ParseDuration(s)
}

// Level is LogLevel as slog knows it.
func (c Config) Level() (slog.Level, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return 0, fmt.Errorf("logLevel %q is not debug, info, warn or error", c.LogLevel)
	}
	return l, nil
}

// Kubeconfig is the path of the administrator's kubeconfig.
func (c Config) Kubeconfig() string { return filepath.Join(c.DataDir, KubeconfigFile) }

// Socket is the path of the node's local socket.
func (c Config) Socket() string { return filepath.Join(c.DataDir, SocketFile) }
