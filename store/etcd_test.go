package store_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
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

func TestEtcdProtocolIsReadOnly(t *testing.T) {
	s := openStore(t, t.TempDir())
	rev := put(t, s, "/registry/configmaps/default/one", "first")
	ca := newAuthority(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- s.ServeEtcd(ctx, l, &tls.Config{Certificates: []tls.Certificate{ca.issue("server")}, ClientCAs: ca.pool()},
			func(c *x509.Certificate) bool { return c.Subject.CommonName == "admin" })
	}()
	dial := func(name string) *clientv3.Client {
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{l.Addr().String()}, DialTimeout: 5 * time.Second, Logger: zap.NewNop(),
			TLS: &tls.Config{Certificates: []tls.Certificate{ca.issue(name)}, RootCAs: ca.pool()}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	admin := dial("admin")
	t.Run("reads", func(t *testing.T) {
		resp, err := admin.Get(ctx, "/registry/", clientv3.WithPrefix())
		if err != nil || resp.Count != 1 || string(resp.Kvs[0].Value) != "first" {
			t.Fatalf("got %v, %v", resp, err)
		}
		if st, err := admin.Status(ctx, l.Addr().String()); err != nil || st.Header.Revision != rev {
			t.Fatalf("got %v, %v", st, err)
		}
		if _, err := admin.AlarmList(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := admin.Defragment(ctx, l.Addr().String()); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("watches from the past", func(t *testing.T) {
		wctx, stop := context.WithTimeout(ctx, 5*time.Second)
		defer stop()
		w := admin.Watch(wctx, "/registry/", clientv3.WithPrefix(), clientv3.WithRev(rev), clientv3.WithPrevKV())
		if ev := (<-w).Events; len(ev) != 1 || string(ev[0].Kv.Value) != "first" {
			t.Fatalf("got %v", ev)
		}
		put(t, s, "/registry/configmaps/default/one", "second")
		if ev := (<-w).Events; len(ev) != 1 || string(ev[0].Kv.Value) != "second" || string(ev[0].PrevKv.Value) != "first" {
			t.Fatalf("got %v", ev)
		}
	})
	t.Run("snapshots", func(t *testing.T) {
		body, err := admin.Snapshot(ctx)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "snapshot")
		var buf bytes.Buffer
		if _, err := io.Copy(&buf, body); err != nil {
			t.Fatal(err)
		}
		// The last 32 bytes are the digest that etcd's tools expect.
		_ = os.WriteFile(path, buf.Bytes()[:buf.Len()-32], 0o600)
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		_ = db.Close()
	})
	t.Run("refuses writes", func(t *testing.T) {
		before := s.Status().Revision
		_, perr := admin.Put(ctx, "/registry/x", "y")
		_, derr := admin.Delete(ctx, "/registry/", clientv3.WithPrefix())
		_, terr := admin.Txn(ctx).Then(clientv3.OpPut("/registry/x", "y")).Commit()
		_, gerr := admin.Grant(ctx, 10)
		_, cerr := admin.Compact(ctx, 1)
		_, merr := admin.MemberAdd(ctx, []string{"http://127.0.0.1:1"})
		for _, err := range []error{perr, derr, terr, gerr, cerr, merr} {
			if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "admission") {
				t.Errorf("got %v", err)
			}
		}
		if _, err := admin.UserList(ctx); status.Code(err) != codes.Unimplemented {
			t.Errorf("got %v", err)
		}
		if after := s.Status().Revision; after != before {
			t.Errorf("revision moved from %d to %d", before, after)
		}
	})
	t.Run("refuses strangers", func(t *testing.T) {
		if _, err := dial("stranger").Get(ctx, "/registry/", clientv3.WithPrefix()); status.Code(err) != codes.PermissionDenied {
			t.Errorf("got %v", err)
		}
	})
	cancel()
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	if err := s.ServeEtcd(context.Background(), l, nil, nil); err == nil {
		t.Fatal("served without certificates")
	}
}
