package engine

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"net/url"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/config"
	"go.etcd.io/etcd/server/v3/etcdserver/api/etcdhttp"
	"go.etcd.io/etcd/server/v3/etcdserver/api/rafthttp"
	etcderrors "go.etcd.io/etcd/server/v3/etcdserver/errors"
	"go.uber.org/zap"

	"github.com/nodeactor/nodeactor/supervision"
)

// Peers says how a member meets the other members of its cluster.
type Peers struct {
	// Listen is the address, host:port, at which the other members reach this one; URL is how they name it, http or https.
	Listen, URL string
	// TLS secures both directions, and is wanted exactly when URL is https.
	TLS PeerTLS
	// Source is the local IP address from which the others are called; "" leaves it to the system.
	Source string
	// Cluster is the peer URL of each member by name, this one's included. It is read while the directory is empty.
	Cluster map[string]string
	// Token sets clusters that begin with the same members apart; all members of one are given the same.
	Token string
	// Join says that the members of Cluster run already and have been told of this one by AddLearner. Otherwise the cluster begins with
	// them, and all of them are started.
	Join bool
	// CompareEvery is how often the members compare their states; 0 = five minutes.
	CompareEvery time.Duration
	// Open makes the listener instead of Listen.
	Open func() (net.Listener, error)
}

// PeerTLS names the files of the certificate with which members know each other; it serves as both the server's and the client's.
type PeerTLS struct {
	CertFile, KeyFile, CAFile string
}

const (
	// peerTickMs and peerElectionTicks are the pulse of a member that has others to hear from over a network.
	peerTickMs        = 100
	peerElectionTicks = 10
	// peerReadTimeout bounds the reading of a request of another member; a snapshot of the database is one.
	peerReadTimeout = 5 * time.Minute
)

// check refuses a configuration with which no member would find another.
func (p *Peers) check(name string) error {
	u, err := url.Parse(p.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("peer URL %q is not http://host:port or https://host:port", p.URL)
	case u.Scheme == "https" && (p.TLS.CertFile == "" || p.TLS.KeyFile == "" || p.TLS.CAFile == ""):
		return fmt.Errorf("peer URL %s needs a certificate, its key and a CA", p.URL)
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return fmt.Errorf("peer URL %s would send everything in the clear: use https, or a loopback address", p.URL)
	case u.Scheme == "http" && p.TLS.CertFile != "":
		return fmt.Errorf("peer URL %s is not https, but there is a certificate", p.URL)
	case len(p.Cluster) > 0 && p.Cluster[name] != p.URL:
		return fmt.Errorf("the initial cluster names %q as the peer URL of %s, not %s", p.Cluster[name], name, p.URL)
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// urls is p.URL in the library's form.
func (p *Peers) urls() (types.URLs, error) { return types.NewURLs([]string{p.URL}) }

// cluster is p.Cluster in the library's form; without one the member begins alone.
func (p *Peers) cluster(name string) (types.URLsMap, error) {
	all := types.URLsMap{}
	for member, u := range p.Cluster {
		urls, err := types.NewURLs([]string{u})
		if err != nil {
			return nil, fmt.Errorf("peer URL of %s: %w", member, err)
		}
		all[member] = urls
	}
	if len(all) > 0 {
		return all, nil
	}
	own, err := p.urls()
	return types.URLsMap{name: own}, err
}

func (p *Peers) tlsInfo() transport.TLSInfo {
	return transport.TLSInfo{CertFile: p.TLS.CertFile, KeyFile: p.TLS.KeyFile, ClientCertFile: p.TLS.CertFile, ClientKeyFile: p.TLS.KeyFile,
		TrustedCAFile: p.TLS.CAFile, ClientCertAuth: p.TLS.CAFile != "", LocalAddr: p.Source}
}

// listen binds the address of the member. Only those with a certificate of the CA get through, if there is one.
func (p *Peers) listen(clock supervision.Clock) (net.Listener, error) {
	open := p.Open
	if open == nil {
		open = func() (net.Listener, error) { return net.Listen("tcp", p.Listen) }
	}
	l, err := open()
	if err != nil {
		return nil, fmt.Errorf("cannot listen for other members on %s: %w", p.Listen, err)
	}
	l = timedListener{l, clock}
	if p.TLS.CertFile == "" {
		return l, nil
	}
	cfg, err := p.tlsInfo().ServerConfig()
	if err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("cannot use the certificate %s of the peer address: %w", p.TLS.CertFile, err)
	}
	return tls.NewListener(l, cfg), nil
}

// servePeers answers the other members until the listener is closed.
func (m *Member) servePeers(log *zap.Logger) {
	server := &http.Server{
		Handler:     etcdhttp.NewPeerHandler(log, m.server),
		ReadTimeout: peerReadTimeout,
		ErrorLog:    stdlog.New(io.Discard, "", 0),
	}
	m.peerServer = server
	m.group.Go("peer listener", func(context.Context) error { return server.Serve(m.listener) }, func(err error) {
		if !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			m.failed.set(fmt.Errorf("the peer address is served no more: %w", err))
		}
	})
}

// closePeers ends what servePeers began, and frees the address.
func (m *Member) closePeers() {
	if m.peerServer != nil {
		_ = m.peerServer.Close()
	}
	if m.listener != nil {
		_ = m.listener.Close()
	}
}

// timedListener gives up connections on which nothing moves, as the library expects of a listener for its streams.
type timedListener struct {
	net.Listener
	clock supervision.Clock
}

// Accept implements net.Listener.
func (l timedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &timedConn{c, l.clock}, nil
}

type timedConn struct {
	net.Conn
	clock supervision.Clock
}

// Write implements net.Conn.
func (c *timedConn) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(c.clock.Now().Add(rafthttp.ConnWriteTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// meetPeers binds the address of a member with others, and makes what it asks them with.
func (m *Member) meetPeers(sc config.ServerConfig) (err error) {
	if m.peers == nil {
		return nil
	}
	if m.listener, err = m.peers.listen(m.clock); err != nil {
		return fmt.Errorf("%w: %w", errPeers, err)
	}
	ask, err := rafthttp.NewRoundTripper(sc.PeerTLSInfo, sc.PeerDialTimeout())
	if err != nil {
		return fmt.Errorf("%w: certificate %s: %w", errPeers, m.peers.TLS.CertFile, err)
	}
	m.peerClient = &http.Client{Transport: ask}
	return nil
}

// begin starts the member that has booted.
func (m *Member) begin(ctx context.Context, sc config.ServerConfig) error {
	if m.peers == nil {
		if n := len(m.server.Cluster().Members()); n > 1 {
			m.server.Cleanup()
			return fmt.Errorf("%w: %d members, and no peer address: name the address at which the others reach this one", errNotAlone, n)
		}
		m.server.Start()
		return nil
	}
	if m.server.IsIDRemoved(uint64(m.server.MemberID())) {
		m.server.Cleanup()
		return removed(m.dir)
	}
	if !sc.NewCluster || sc.InitialPeerURLsMap == nil {
		if err := m.compareAtStart(ctx); err != nil {
			m.server.Cleanup()
			return err
		}
	}
	m.server.Start()
	m.servePeers(sc.Logger)
	return nil
}

// notJoined tells a first start that the other members prevented from one that its own files did.
func (m *Member) notJoined(sc config.ServerConfig, err error) error {
	if m.peers == nil || sc.InitialPeerURLsMap == nil {
		return err
	}
	return fmt.Errorf("%w: %w", errPeers, err)
}

var (
	// errNotAlone is returned when the directory is that of a member of several, and there is no way to meet them.
	errNotAlone = errors.New("the store belongs to a cluster")
	// errPeers is returned when a member cannot be set up to meet the others.
	errPeers = errors.New("cannot meet the other members")
)

// join makes a member that is ready one that others can rely on.
func (m *Member) join(ctx context.Context) error {
	if m.peers == nil {
		return nil
	}
	if err := m.claimURL(ctx); err != nil {
		return err
	}
	m.settled.Store(true)
	m.group.Go("engine members", m.attend, nil)
	return nil
}

// end stops the member. One that leads hands that on first: its successor need not wait for its silence to be noticed.
func (m *Member) end() {
	if m.peers != nil && !m.broken() && !m.Solo() {
		m.server.Stop()
	} else {
		m.server.HardStop()
	}
	m.closePeers()
}

// together does what needs the other members; among several it ends with the quorum. begun is false when it was refused at once.
func (m *Member) together(ctx context.Context, do func(context.Context) error) (begun bool, err error) {
	if m.peers == nil {
		return true, do(ctx)
	}
	ctx, done, err := m.quorum.guard(ctx, m.clock)
	if err != nil {
		return false, err
	}
	defer done()
	if err = do(ctx); err == nil {
		return true, nil
	}
	if lost := (*Outage)(nil); errors.As(context.Cause(ctx), &lost) {
		return true, lost
	}
	return true, err
}

// outcome translates the error of a write. What ended by time may still be done.
func (m *Member) outcome(begun bool, err error) error {
	if !begun {
		return err
	}
	for _, e := range []error{etcderrors.ErrStopped, etcderrors.ErrCanceled, etcderrors.ErrTimeout, etcderrors.ErrTimeoutDueToLeaderFail,
		etcderrors.ErrTimeoutDueToConnectionLost, context.Canceled, context.DeadlineExceeded, ErrNoQuorum} {
		if errors.Is(err, e) {
			return unknown(m.translate(err))
		}
	}
	return m.translate(err)
}
