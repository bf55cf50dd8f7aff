package interop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/nodeactor/nodeactor/test/daemon"
	"github.com/nodeactor/nodeactor/test/loopback"
)

const (
	// runPrefix marks everything that a run of these tests makes on the host.
	runPrefix = "nainterop"
	// startLimit bounds a start on a busy machine.
	startLimit = 60 * time.Second
)

// TestMain silences the client library and teaches it custom resources.
func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	if err := apiextensionsv1.AddToScheme(scheme.Scheme); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// node is a daemon with a directory of its own.
type node struct {
	t         testing.TB
	bin, dir  string
	args      []string
	etcd      string
	exited    chan error
	process   *os.Process
	clientset kubernetes.Interface
	dynamic   dynamic.Interface
}

// startNode starts a node with further flags and waits until it is ready. It is removed with the test.
func startNode(t testing.TB, flags ...string) *node {
	t.Helper()
	bin := daemon.Bin(t)
	daemon.Sweep(t, bin, runPrefix)
	dir, err := os.MkdirTemp("", runPrefix+"-")
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, bin: bin, dir: dir, etcd: loopback.Free(t)}
	t.Cleanup(n.remove)
	n.args = append([]string{"run", "--data-dir", dir, "--node-name", "interop", "--api-addr", loopback.Free(t), "--kubelet-addr", loopback.Free(t),
		"--etcd-addr", n.etcd, "--cgroup-root", "/" + filepath.Base(dir), "--pod-cidr", "10.217.0.0/24"}, flags...)
	n.launch()
	n.await()
	return n
}

func (n *node) launch() {
	n.t.Helper()
	cmd, exited := daemon.Start(n.t, n.bin, n.dir, os.O_APPEND, n.args...)
	n.process, n.exited = cmd.Process, exited
}

// await returns once the node is ready, with clients.
func (n *node) await() {
	n.t.Helper()
	for end := time.Now().Add(startLimit); ; time.Sleep(50 * time.Millisecond) {
		err := n.connect(filepath.Join(n.dir, "admin.kubeconfig"))
		if err == nil {
			return
		}
		select {
		case gone := <-n.exited:
			n.process = nil
			n.t.Fatalf("the node ended: %v", gone)
		default:
		}
		if time.Now().After(end) {
			n.t.Fatalf("not ready within %s: %v", startLimit, err)
		}
	}
}

// crash kills the node and starts it again.
func (n *node) crash() {
	n.t.Helper()
	_ = n.process.Kill()
	<-n.exited
	n.launch()
	n.await()
}

func (n *node) connect(kubeconfig string) error {
	cfg, err := clientConfig(kubeconfig)
	if err != nil {
		return err
	}
	n.clientset, n.dynamic = kubernetes.NewForConfigOrDie(cfg), dynamic.NewForConfigOrDie(cfg)
	return ready(n.clientset)
}

func clientConfig(kubeconfig string) (*rest.Config, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	cfg.QPS, cfg.WarningHandler = -1, rest.NoWarnings{}
	return cfg, nil
}

func ready(c kubernetes.Interface) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, err := c.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	return err
}

// nodeactor is the node's own command line, on its directory.
func (n *node) nodeactor(args ...string) answer {
	n.t.Helper()
	return finish(n.t, exec.Command(filepath.Join(n.bin, "nodeactor"), append(args, "--data-dir", n.dir)...))
}

func (n *node) pki(file string) string { return filepath.Join(n.dir, "pki", file) }

// ctl is etcdctl with a certificate and its key, "" for none.
func (n *node) ctl(cert, key string) *ctl {
	n.t.Helper()
	c := &ctl{t: n.t, bin: tool(n.t, "etcdctl"), env: []string{"ETCDCTL_ENDPOINTS=https://" + n.etcd, "ETCDCTL_CACERT=" + n.pki("ca.crt")}}
	if cert != "" {
		c.env = append(c.env, "ETCDCTL_CERT="+cert, "ETCDCTL_KEY="+key)
	}
	return c
}

// admin is etcdctl as the administrator.
func (n *node) admin() *ctl { return n.ctl(n.pki("admin.pem"), n.pki("admin.pem")) }

func (n *node) remove() {
	if n.t.Failed() {
		n.t.Logf("end of the node's log:\n%s", daemon.Tail(n.dir+daemon.LogSuffix, 40))
	}
	if n.process != nil {
		_ = n.process.Signal(syscall.SIGTERM)
		select {
		case <-n.exited:
		case <-time.After(30 * time.Second):
			n.t.Error("the node does not end")
			_ = n.process.Kill()
			<-n.exited
		}
	}
	if a := n.nodeactor("reset", "--yes", "--cgroup-root", "/"+filepath.Base(n.dir)); a.code != 0 {
		n.t.Errorf("reset: %s", a.err)
	}
	daemon.Remove(n.dir)
}

// eventually repeats check until it finds nothing wrong.
func eventually(t testing.TB, within time.Duration, check func() error) {
	t.Helper()
	for end := time.Now().Add(within); ; time.Sleep(50 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("within %s: %v", within, err)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// numbered is a name with a number.
func numbered(name string, i int) string { return fmt.Sprintf("%s-%d", name, i) }
