package interop

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// authority signs certificates for a test. Files hold a certificate and its key.
type authority struct {
	t    testing.TB
	dir  string
	file string
	pair *tls.Certificate // nil: what is issued signs itself
}

// newAuthority makes an authority with files in dir.
func newAuthority(t testing.TB, dir string) *authority {
	a := &authority{t: t, dir: dir}
	a.file = a.issue("ca", x509.Certificate{Subject: pkix.Name{CommonName: "peer-ca"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a.load(a.file)
}

// authorityOf is the authority in a node's file.
func authorityOf(t testing.TB, file string) *authority {
	return (&authority{t: t, dir: t.TempDir()}).load(file)
}

func (a *authority) load(file string) *authority {
	pair, err := tls.LoadX509KeyPair(file, file)
	must(a.t, err)
	a.pair = &pair
	return a
}

// issue signs what the template says and returns its file.
func (a *authority) issue(name string, template x509.Certificate) string {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(a.t, err)
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Minute), time.Now().Add(24*time.Hour)
	parent, signer := &template, any(key)
	if a.pair != nil {
		parent, signer = a.pair.Leaf, a.pair.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, parent, key.Public(), signer)
	must(a.t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	must(a.t, err)
	file := filepath.Join(a.dir, name+".pem")
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})...)
	must(a.t, os.WriteFile(file, text, 0o600))
	return file
}

func (a *authority) client(name, group string) string {
	return a.issue(name, x509.Certificate{Subject: pkix.Name{CommonName: name, Organization: []string{group}}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

func (a *authority) server(name string) string {
	return a.issue(name, x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
}
