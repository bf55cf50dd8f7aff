// Package etcdserver runs a real etcd on loopback in the process of a test, with TLS and client certificates, as a cluster elsewhere would
// be. It can be stopped and started again on the same address and data.
package etcdserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/nodeactor/nodeactor/test/loopback"
)

const (
	// startLimit bounds a start on a busy machine.
	startLimit = 30 * time.Second
	// startTries is how many addresses are tried.
	startTries = 5
	// tickMs and electionMs make a server that is alone lead at once.
	tickMs, electionMs = 20, 200
	// certFor is how long the certificates are valid.
	certFor = 24 * time.Hour
)

// Server is one etcd server, which may be stopped.
type Server struct {
	t    testing.TB
	cfg  *embed.Config
	etcd *embed.Etcd

	Endpoint                  string // https URL
	CAFile, CertFile, KeyFile string // for a client
	// StrangeCAFile and StrangeCertFile with StrangeKeyFile belong to another authority.
	StrangeCAFile, StrangeCertFile, StrangeKeyFile string
}

// Start makes a server with a directory of its own and starts it. It ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s := Prepare(t)
	for tries := 1; s.etcd == nil; tries++ {
		// Somebody else may have taken an address meanwhile.
		if err := s.try(); errors.Is(err, syscall.EADDRINUSE) && tries < startTries {
			s.settle()
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// Prepare makes a server that is not started.
func Prepare(t testing.TB) *Server {
	t.Helper()
	dir := t.TempDir()
	s := &Server{t: t}
	ours, strange := newAuthority(t, dir, "ca"), newAuthority(t, dir, "strange-ca")
	s.CAFile, s.StrangeCAFile = ours.file, strange.file
	s.CertFile, s.KeyFile = ours.issue("client")
	s.StrangeCertFile, s.StrangeKeyFile = strange.issue("strange-client")
	cert, key := ours.issue("server")
	cfg := embed.NewConfig()
	cfg.Dir = filepath.Join(dir, "etcd")
	cfg.ClientTLSInfo.CertFile, cfg.ClientTLSInfo.KeyFile = cert, key
	cfg.ClientTLSInfo.TrustedCAFile, cfg.ClientTLSInfo.ClientCertAuth = ours.file, true
	cfg.TickMs, cfg.ElectionMs = tickMs, electionMs
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	s.cfg = cfg
	s.settle()
	t.Cleanup(s.Stop)
	return s
}

// settle chooses the addresses.
func (s *Server) settle() {
	s.t.Helper()
	s.Endpoint = "https://" + loopback.Free(s.t)
	s.cfg.ListenClientUrls = []url.URL{mustURL(s.t, s.Endpoint)}
	s.cfg.AdvertiseClientUrls = s.cfg.ListenClientUrls
	s.cfg.ListenPeerUrls = []url.URL{mustURL(s.t, "http://"+loopback.Free(s.t))}
	s.cfg.AdvertisePeerUrls = s.cfg.ListenPeerUrls
	s.cfg.InitialCluster = s.cfg.InitialClusterFromName(s.cfg.Name)
}

// Start starts a server that is prepared or was stopped, and waits until it serves.
func (s *Server) Start() {
	s.t.Helper()
	if err := s.try(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) try() error {
	etcd, err := embed.StartEtcd(s.cfg)
	if err != nil {
		return err
	}
	s.etcd = etcd
	select {
	case <-s.etcd.Server.ReadyNotify():
		return nil
	case <-time.After(startLimit):
		return errors.New("etcd did not become ready")
	}
}

// Stop ends the server at once and cuts its connections. Its address and data stay.
func (s *Server) Stop() {
	if s.etcd != nil {
		s.etcd.Server.HardStop() // or its watchers would be waited for
		s.etcd.Close()
		s.etcd = nil
	}
}

// Hide starts the server again on another address, which the result undoes.
func (s *Server) Hide() (back func()) {
	s.t.Helper()
	s.Stop()
	known, urls := s.Endpoint, s.cfg.ListenClientUrls
	s.Endpoint = "https://" + loopback.Free(s.t)
	s.cfg.ListenClientUrls = []url.URL{mustURL(s.t, s.Endpoint)}
	s.Start()
	return func() {
		s.Stop()
		s.Endpoint, s.cfg.ListenClientUrls = known, urls
		s.Start()
	}
}

// Client returns a client of the server, which ends with the test.
func (s *Server) Client() *clientv3.Client {
	s.t.Helper()
	pool := x509.NewCertPool()
	ca, err := os.ReadFile(s.CAFile)
	if err != nil || !pool.AppendCertsFromPEM(ca) {
		s.t.Fatalf("no CA: %v", err)
	}
	pair, err := tls.LoadX509KeyPair(s.CertFile, s.KeyFile)
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{s.Endpoint}, TLS: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}, Logger: zap.NewNop()})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

func mustURL(t testing.TB, text string) url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return *u
}

// authority signs certificates of servers and clients on loopback.
type authority struct {
	t    testing.TB
	dir  string
	file string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB, dir, name string) *authority {
	t.Helper()
	a := &authority{t: t, dir: dir, file: filepath.Join(dir, name+".crt"), key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(certFor),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err == nil {
		a.cert, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, a.file, "CERTIFICATE", der)
	return a
}

// issue writes a certificate and its key and returns their files.
func (a *authority) issue(name string) (certFile, keyFile string) {
	a.t.Helper()
	key := newKey(a.t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(certFor),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(a.dir, name+".crt"), filepath.Join(a.dir, name+".key")
	writePEM(a.t, certFile, "CERTIFICATE", der)
	writePEM(a.t, keyFile, "EC PRIVATE KEY", raw)
	return certFile, keyFile
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func writePEM(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
