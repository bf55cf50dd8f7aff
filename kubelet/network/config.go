package network

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"regexp"
	"time"
)

// Names and limits.
const (
	// DefaultDataDir is the data directory whose node has the plain names.
	DefaultDataDir = "/var/lib/nodeactor"
	defaultBridge  = "nodeactor0"
	defaultPrefix  = "na"
	tablePrefix    = "nodeactor_" // nft tables are called this and Config.Prefix
	podInterface   = "eth0"       // name of the interface inside a pod
	maxLinkName    = 15           // characters the kernel allows
	maxPrefix      = 8            // leaves six for the pod in the name of a host end
	maxCIDRBits    = 30           // a smaller range has no room for gateway and one pod
	minCIDRBits    = 8            // no larger range can be meant

	// answerTimeout bounds one answer of the kernel.
	answerTimeout = 10 * time.Second
	// defaultMTU is used when no uplink tells.
	defaultMTU = 1500
	bucket     = "network" // of the ledger, from pod UID to record
)

var (
	// ErrFull is returned when every address of the pod range is taken.
	ErrFull = errors.New("no address left in the pod range")
	// ErrOverlap is returned when the pod range overlaps one that is routed elsewhere on this node.
	ErrOverlap = errors.New("pod range is in use")
	// ErrNamespace is returned when the path given for a pod is not a network namespace of its own.
	ErrNamespace = errors.New("not a network namespace of a pod")
)

// Ledger is the part of the node's ledger that the network uses. Put must be durable when it returns.
type Ledger interface {
	Put(bucket, key string, v any) error
	Delete(bucket, key string) error
	Each(bucket string, fn func(key string, raw []byte) error) error
}

// Config says how the pods of a node are connected.
type Config struct {
	// Bridge is the name of the bridge, at most 15 characters.
	Bridge string
	// Prefix begins the names of all host ends and of the nft table, at most 8 letters and digits. Nodes that share a
	// network namespace must have different ones, none the beginning of another's followed by "v".
	Prefix string
	// PodCIDR is the IPv4 range of the node's pods; its first address is the gateway.
	PodCIDR netip.Prefix
	// Direct lists ranges that pods reach with their own address, as other nodes' pod ranges. The pod range itself and
	// multicast always are.
	Direct []netip.Prefix
	// MTU of bridge and pods in bytes; 0 takes the MTU of the link the default route uses.
	MTU    int
	Ledger Ledger
	Log    *slog.Logger
}

// Names derives names of bridge and prefix from a node's data directory, so that nodes on one machine do not collide. The
// default directory gives the plain names.
func Names(dataDir string) (bridge, prefix string) {
	dir := filepath.Clean(dataDir)
	if dir == DefaultDataDir {
		return defaultBridge, defaultPrefix
	}
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte(dir)))[:6]
	return "na-" + hash, "na" + hash
}

var prefixForm = regexp.MustCompile(`^[a-z][a-z0-9]*$`)

func (c Config) validate() error {
	switch {
	case c.Bridge == "" || len(c.Bridge) > maxLinkName:
		return fmt.Errorf("bridge name %q has not 1 to %d characters", c.Bridge, maxLinkName)
	case len(c.Prefix) > maxPrefix || !prefixForm.MatchString(c.Prefix):
		return fmt.Errorf("prefix %q is not 1 to %d lower-case letters and digits", c.Prefix, maxPrefix)
	case !c.PodCIDR.IsValid() || !c.PodCIDR.Addr().Is4():
		return fmt.Errorf("pod range %v is not IPv4", c.PodCIDR)
	case c.PodCIDR.Bits() > maxCIDRBits || c.PodCIDR.Bits() < minCIDRBits:
		return fmt.Errorf("pod range %v is not between /%d and /%d", c.PodCIDR, minCIDRBits, maxCIDRBits)
	case c.MTU < 0 || c.MTU > 65535:
		return fmt.Errorf("MTU %d is not between 0 and 65535", c.MTU)
	case c.Ledger == nil:
		return errors.New("no ledger given")
	}
	for _, p := range c.Direct {
		if !p.IsValid() || !p.Addr().Is4() {
			return fmt.Errorf("direct range %v is not IPv4", p)
		}
	}
	return nil
}
