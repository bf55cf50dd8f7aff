package apiserver

import (
	"context"
	"crypto/tls"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/nodeactor/nodeactor/cluster/identity"
	"github.com/nodeactor/nodeactor/store"
)

// testTimeout bounds every test.
const testTimeout = 60 * time.Second

// verbose tells whether -v was given: with -json, by which results are kept, all tests are verbose and nobody reads it.
func verbose() bool { return flag.Lookup("test.v").Value.String() == "true" }

func TestMain(m *testing.M) {
	flag.Parse()
	if !verbose() {
		klog.SetSlogLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
	}
	os.Exit(m.Run())
}

// fixture is a server over a real store, bootstrapped.
type fixture struct {
	*Server
	id    *identity.Identity
	store *store.Store
	ctx   context.Context
	admin kubernetes.Interface // in process
}

// newFixture starts a server that ends with the test.
func newFixture(t testing.TB) *fixture {
	return newFixtureIn(t, t.TempDir(), Config{})
}

func newFixtureIn(t testing.TB, dir string, config Config) *fixture {
	t.Helper()
	f := &fixture{}
	var cancel context.CancelFunc
	f.ctx, cancel = context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	var err error
	if f.id, err = identity.Load(dir + "/pki"); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	if f.store, err = store.Open(f.ctx, store.Config{Dir: dir + "/store", NodeName: "test", Log: log}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
		defer cancel()
		if err := f.store.Close(ctx); err != nil {
			t.Errorf("cannot close the store: %v", err)
		}
	})
	config.Store, config.Identity, config.Log = f.store, f.id, log
	if config.AdvertiseAddr == "" {
		config.AdvertiseAddr = "192.0.2.1:6443"
	}
	if f.Server, err = New(f.ctx, config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	if err := f.Bootstrap(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.admin = kubernetes.NewForConfigOrDie(f.InProcess(identity.AdminUser, identity.MastersGroup))
	return f
}

// listen serves the API over TLS on loopback and returns the administrator's configuration for it.
func (f *fixture) listen(t testing.TB) *rest.Config {
	t.Helper()
	config, err := f.id.ServerTLS(identity.APIServerHosts("test", f.allocators.reserved))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: f.Handler(), TLSConfig: config, ReadHeaderTimeout: testTimeout}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		server.Close()
		<-done
	})
	path := t.TempDir() + "/kubeconfig"
	if err := f.id.WriteKubeconfig(path, "https://"+listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	admin, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	admin.QPS = -1
	return admin
}

// as returns the configuration without the administrator's certificate, with a token instead; none for an empty one.
func as(config *rest.Config, token string) *rest.Config {
	anonymous := rest.AnonymousClientConfig(config)
	anonymous.BearerToken = token
	return anonymous
}
