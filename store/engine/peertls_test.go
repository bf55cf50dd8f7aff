package engine

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

// ca signs certificates for members.
type ca struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newCA(t *testing.T) *ca {
	t.Helper()
	c := &ca{t: t, dir: t.TempDir()}
	c.cert, c.key = c.sign("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return c
}

// sign writes a certificate and its key to name.crt and name.key.
func (c *ca) sign(name string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	c.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	template.SerialNumber, template.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := template, key
	if c.cert != nil {
		parent, signer = c.cert, c.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		c.t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		c.t.Fatal(err)
	}
	c.write(name+".crt", "CERTIFICATE", der)
	c.write(name+".key", "EC PRIVATE KEY", private)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		c.t.Fatal(err)
	}
	return cert, key
}

func (c *ca) write(name, kind string, der []byte) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// member is the files of a member's certificate.
func (c *ca) member(name, ip string) PeerTLS {
	c.sign(name, &x509.Certificate{IPAddresses: []net.IP{net.ParseIP(ip)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}})
	in := func(f string) string { return filepath.Join(c.dir, f) }
	return PeerTLS{CertFile: in(name + ".crt"), KeyFile: in(name + ".key"), CAFile: in("ca.crt")}
}

// TestMembersKnowOneAnotherByCertificate: with https the members are one store, and nobody without a certificate of their CA gets through.
func TestMembersKnowOneAnotherByCertificate(t *testing.T) {
	c, authority := newCluster(t, 3), newCA(t)
	names := map[string]string{}
	for i := range c.cfgs {
		names[c.cfgs[i].NodeName] = "https://" + c.addrs[i]
		c.cfgs[i].Peers.URL, c.cfgs[i].Peers.Cluster = "https://"+c.addrs[i], names
		c.cfgs[i].Peers.TLS = authority.member(c.cfgs[i].NodeName, ipOf(i))
	}
	c.open(0, 1, 2)
	c.put(0, "/a", "1")
	for i := range 3 {
		if got := c.get(i, "/a"); got != "1" {
			t.Errorf("member %d reads %q", i, got)
		}
	}
	files := newCA(t).member("x", ipOf(1))
	stranger, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	for what, certs := range map[string][]tls.Certificate{"none": nil, "another's": {stranger}} {
		conn, err := tls.Dial("tcp", c.addrs[0], &tls.Config{InsecureSkipVerify: true, Certificates: certs})
		if err == nil {
			_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
			_, _ = conn.Write([]byte("GET /version HTTP/1.0\r\n\r\n"))
			_, err = conn.Read(make([]byte, 1))
			_ = conn.Close()
		}
		if err == nil {
			t.Errorf("%s: got through", what)
		}
	}
	if missing := c.member(0).missing(context.Background()); len(missing) > 0 {
		t.Errorf("%v do not answer", missing)
	}
}

// TestPeersAreRefused: a configuration with which no member would find another is refused with what is wrong, and not as damage.
func TestPeersAreRefused(t *testing.T) {
	for want, p := range map[string]Peers{
		"is not http://host:port":        {URL: "127.0.0.1:1"},
		"in the clear":                   {URL: "http://192.0.2.1:1"},
		"needs a certificate":            {URL: "https://127.0.0.1:1"},
		"is not https, but there is":     {URL: "http://127.0.0.1:1", TLS: PeerTLS{CertFile: "x"}},
		"the initial cluster names":      {URL: "http://127.0.0.1:1", Cluster: map[string]string{"n": "http://127.0.0.1:2"}},
		"cannot listen for other member": {URL: "http://127.0.0.1:1", Listen: "192.0.2.1:1"},
	} {
		_, err := Open(context.Background(), Config{Dir: t.TempDir(), NodeName: "n", Clock: supervision.RealClock(), Log: slog.New(slog.DiscardHandler), Peers: &p})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "damaged") {
			t.Errorf("%s: got %v", want, err)
		}
	}
}
