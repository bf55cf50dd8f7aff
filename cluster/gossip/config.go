package gossip

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/hashicorp/memberlist"
)

// ErrConfig is returned when a member cannot be made from its configuration.
var ErrConfig = errors.New("invalid gossip configuration")

// Times of the actors themselves.
const (
	// createTimeout bounds getting the sockets.
	createTimeout = 10 * time.Second
	// leaveTimeout is how long the others get to hear that this host leaves.
	leaveTimeout = 2 * time.Second
	// dialTimeout bounds one stream to a peer, dialsPerRound how many absent peers are dialled, one
	// after the other, in one round, joinTimeout the round.
	dialTimeout   = 2 * time.Second
	dialsPerRound = 5
	joinTimeout   = 12 * time.Second
	// rejoinEvery is the pause between two rounds; each member begins at its own moment in it.
	rejoinEvery = 15 * time.Second
	// viewTimeout bounds reading the list of members.
	viewTimeout = 5 * time.Second
)

// Pace is how fast faults are seen, against how much is sent and how often a busy host is
// suspected wrongly.
type Pace struct {
	ProbeInterval, ProbeTimeout      time.Duration
	GossipInterval, PushPullInterval time.Duration
	GossipNodes                      int
	SuspicionMult, SuspicionMaxMult  int
}

// Calm is the pace of the product: memberlist's own for a local network.
func Calm() Pace {
	d := memberlist.DefaultLANConfig()
	return Pace{
		d.ProbeInterval, d.ProbeTimeout, d.GossipInterval, d.PushPullInterval,
		d.GossipNodes, d.SuspicionMult, d.SuspicionMaxTimeoutMult,
	}
}

// Config is one host's membership.
type Config struct {
	// Name is the member's name in this life, see NodeName.
	Name string
	// Bind is the address to listen on; Advertise the one that peers shall use, Bind when zero.
	Bind, Advertise netip.AddrPort
	// Key encrypts everything: 16, 24 or 32 bytes, the same on every host.
	Key []byte
	// Cluster keeps clusters apart that meet on one network; at most 255 bytes.
	Cluster string
	Meta    Meta
	Pace    Pace
	Log     *slog.Logger
	// Transport carries the traffic; nil means UDP and TCP at Bind.
	Transport memberlist.Transport
}

// NodeName makes the member name of one life of a host. An old verdict on an earlier life
// names somebody else then.
func NodeName(id string, boot uint64) string { return fmt.Sprintf("%s.%x", id, boot) }

// memberlist turns the configuration into the library's; nothing is opened.
func (c Config) memberlist(d *delegate) (*memberlist.Config, error) {
	if !slices.Contains([]int{16, 24, 32}, len(c.Key)) {
		return nil, fmt.Errorf("%w: the key has %d bytes, it must have 16, 24 or 32", ErrConfig, len(c.Key))
	}
	if c.Name == "" || len(c.Cluster) > 255 {
		return nil, fmt.Errorf("%w: a member needs a name, and a cluster name of at most 255 bytes", ErrConfig)
	}
	m := memberlist.DefaultLANConfig()
	m.Name, m.Label, m.SecretKey, m.Transport = c.Name, c.Cluster, c.Key, c.Transport
	m.BindAddr, m.BindPort = c.Bind.Addr().String(), int(c.Bind.Port())
	if c.Advertise.IsValid() {
		m.AdvertiseAddr, m.AdvertisePort = c.Advertise.Addr().String(), int(c.Advertise.Port())
	} else {
		m.AdvertisePort = int(c.Bind.Port())
	}
	p := c.Pace
	m.ProbeInterval, m.ProbeTimeout, m.GossipInterval, m.PushPullInterval = p.ProbeInterval, p.ProbeTimeout, p.GossipInterval, p.PushPullInterval
	m.GossipNodes, m.SuspicionMult, m.SuspicionMaxTimeoutMult = p.GossipNodes, p.SuspicionMult, p.SuspicionMaxMult
	m.TCPTimeout = dialTimeout
	m.Delegate, m.Events = d, d
	m.Logger = bridge(c.Log)
	return m, nil
}
