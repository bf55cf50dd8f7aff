package crash

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/nodeactor/nodeactor/test/daemon"
	"github.com/nodeactor/nodeactor/test/loopback"
)

const (
	// runPrefix marks everything that a run of these tests makes on the host.
	runPrefix = "nacrash"
	// startLimit bounds a start on a busy machine.
	startLimit = 60 * time.Second
)

// node is one daemon that is killed and started again.
type node struct {
	t                  testing.TB
	bin, dir           string
	api, kubelet, etcd string
	cmd                *exec.Cmd
	exited             chan error
	counters
}

// TestMain silences the client library: that answers break off is the purpose here.
func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

func newNode(t testing.TB) *node {
	t.Helper()
	bin := daemon.Bin(t)
	daemon.Sweep(t, bin, runPrefix)
	dir, err := os.MkdirTemp("", runPrefix+"-")
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, bin: bin, dir: dir, api: loopback.Free(t), kubelet: loopback.Free(t), etcd: loopback.Free(t)}
	t.Cleanup(n.remove)
	return n
}

func (n *node) logPath() string { return n.dir + daemon.LogSuffix }

// launch starts the daemon with a quota so small that the store forgets history and rewrites its file all the time.
func (n *node) launch(extra ...string) {
	n.t.Helper()
	n.cmd, n.exited = daemon.Start(n.t, n.bin, n.dir, os.O_TRUNC, append([]string{"run", "--data-dir", n.dir, "--node-name", "crash", "--api-addr", n.api,
		"--kubelet-addr", n.kubelet, "--etcd-addr", n.etcd, "--cgroup-root", "/" + filepath.Base(n.dir), "--pod-cidr", fmt.Sprintf("10.219.%d.0/24", os.Getpid()%256),
		"--store-quota", "16Mi", "--snapshot-every", "off", "--etcd-writes"}, extra...)...)
}

// ready waits until the API answers a read of the store, and returns a client without limits.
func (n *node) ready() (kubernetes.Interface, error) {
	end := time.Now().Add(startLimit)
	for {
		client, err := n.client()
		if err == nil {
			err = healthy(client)
		}
		if err == nil {
			return client, nil
		}
		select {
		case gone := <-n.exited:
			n.cmd = nil
			return nil, fmt.Errorf("the daemon ended: %w: %s", gone, n.tail(10))
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("not ready within %s: %w", startLimit, err)
		}
	}
}

// healthy asks for a linearizable read.
func healthy(c kubernetes.Interface) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, err := c.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	return err
}

func (n *node) client() (kubernetes.Interface, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", filepath.Join(n.dir, "admin.kubeconfig"))
	if err != nil {
		return nil, err
	}
	cfg.QPS, cfg.Timeout = -1, 10*time.Second
	cfg.WarningHandler = rest.NoWarnings{}
	return kubernetes.NewForConfig(cfg)
}

// kill ends the daemon as a crash of the process does.
func (n *node) kill() {
	if n.cmd == nil {
		return
	}
	_ = n.cmd.Process.Kill()
	<-n.exited
	n.cmd = nil
}

func (n *node) remove() {
	if n.t.Failed() {
		n.t.Logf("end of the daemon's log:\n%s", n.tail(60))
	}
	n.kill()
	out, err := exec.Command(filepath.Join(n.bin, "nodeactor"), "reset", "--yes", "--data-dir", n.dir, "--cgroup-root", "/"+filepath.Base(n.dir)).CombinedOutput()
	if err != nil {
		n.t.Errorf("reset: %v: %s", err, out)
	}
	daemon.Remove(n.dir)
}

// grep is the first line of the log with a text, or nothing.
func (n *node) grep(text string) string {
	b, _ := os.ReadFile(n.logPath())
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, text) {
			return line
		}
	}
	return ""
}

func (n *node) tail(lines int) string { return daemon.Tail(n.logPath(), lines) }
