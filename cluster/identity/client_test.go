package identity

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestEtcdReaderCanOnlyRead(t *testing.T) {
	dir := t.TempDir()
	i, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadDir(dir)
	c, err := i.IssueEtcdReader("alice", 48*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(c.Cert, c.Key)
	if err != nil {
		t.Fatal(err)
	}
	leaf := pair.Leaf
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: i.CAPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Errorf("as a client: %v", err)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: i.CAPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err == nil {
		t.Error("it can be shown by a server")
	}
	if leaf.Subject.CommonName != "nodeactor:etcd-reader:alice" || !slices.Equal(leaf.Subject.Organization, []string{"nodeactor:etcd-readers"}) {
		t.Errorf("it is of %v", leaf.Subject)
	}
	if life := time.Until(leaf.NotAfter); life > 48*time.Hour || life < 47*time.Hour || !c.Expires.Equal(leaf.NotAfter) {
		t.Errorf("it lives %s", life)
	}
	if !slices.Equal(c.CA, i.CAPEM()) {
		t.Error("not with the cluster's authority")
	}
	if after, _ := os.ReadDir(dir); len(after) != len(before) {
		t.Errorf("files were left in %s", filepath.Base(dir))
	}
	long, err := i.IssueEtcdReader("alice", 100*365*24*time.Hour)
	if err != nil || long.Expires.After(i.authority.cert.NotAfter) {
		t.Errorf("it outlives its authority: %v, %v", long.Expires, err)
	}
}
