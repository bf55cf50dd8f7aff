package store_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/nodeactor/nodeactor/store"
)

// authority makes certificates for one test.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.cert, _ = x509.ParseCertificate(der)
	return a
}

func (a *authority) issue(name string) tls.Certificate {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// facade is a store that serves the etcd protocol.
type facade struct {
	t     *testing.T
	store *store.Store
	ca    *authority
	addr  string
	stop  func() error // ends the serving and says how it ended
}

// serveEtcd serves s to "admin", who may write if the serving says so, and "reader".
func serveEtcd(t *testing.T, s *store.Store, writes bool) *facade {
	t.Helper()
	f := &facade{t: t, store: s, ca: newAuthority(t)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- s.ServeEtcd(ctx, l, store.EtcdOptions{TLS: &tls.Config{Certificates: []tls.Certificate{f.ca.issue("server")}, ClientCAs: f.ca.pool()},
			Authorize: access, Writes: writes, URL: "https://" + f.addr})
	}()
	f.stop = func() error { cancel(); return <-served }
	t.Cleanup(func() { cancel() })
	return f
}

func access(c *x509.Certificate) store.EtcdAccess {
	return map[string]store.EtcdAccess{"admin": store.EtcdWrite, "reader": store.EtcdRead}[c.Subject.CommonName]
}

// client is the official client, as whom the name says.
func (f *facade) client(name string) *clientv3.Client {
	f.t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{f.addr}, DialTimeout: 5 * time.Second, Logger: zap.NewNop(),
		TLS: &tls.Config{Certificates: []tls.Certificate{f.ca.issue(name)}, RootCAs: f.ca.pool()}})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = c.Close() })
	return c
}
