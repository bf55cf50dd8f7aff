package interop

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/nodeactor/nodeactor/test/daemon"
	"github.com/nodeactor/nodeactor/test/loopback"
)

const (
	// peerAddress is what the peer says of itself: an address for documents, because the endpoints of a Service cannot be on loopback.
	peerAddress = "192.0.2.10"
	// compactionInterval is shortened so that a short run sees several.
	compactionInterval = time.Minute
)

// peer is a kube-apiserver as it is published, on a node's etcd API.
type peer struct {
	t          *testing.T
	log        string
	kubeconfig string
	kubectlBin string
	process    *os.Process
	exited     chan error
	clientset  kubernetes.Interface
	dynamic    dynamic.Interface
}

// startPeer starts it with certificates of its own and waits until it is ready.
func startPeer(t *testing.T, n *node) *peer {
	t.Helper()
	dir := t.TempDir()
	ca, addr := newAuthority(t, dir), loopback.Free(t)
	_, port, _ := net.SplitHostPort(addr)
	server, admin, etcd := ca.server("apiserver"), ca.client("admin", "system:masters"), n.pki("admin.pem")
	p := &peer{t: t, log: filepath.Join(dir, "log"), kubeconfig: filepath.Join(dir, "kubeconfig"), kubectlBin: filepath.Join(n.bin, "nodeactor-kubectl"), exited: make(chan error, 1)}
	must(t, os.WriteFile(p.kubeconfig, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"peer","contexts":[{"name":"peer","context":{"cluster":"peer","user":"admin"}}],
"clusters":[{"name":"peer","cluster":{"server":"https://%s","certificate-authority":%q}}],"users":[{"name":"admin","user":{"client-certificate":%q,"client-key":%q}}]}`,
		addr, ca.file, admin, admin), 0o600))
	log, err := os.Create(p.log)
	must(t, err)
	defer log.Close()
	cmd := exec.Command(tool(t, "kube-apiserver"), "--etcd-servers=https://"+n.etcd, "--etcd-cafile="+n.pki("ca.crt"), "--etcd-certfile="+etcd, "--etcd-keyfile="+etcd,
		"--etcd-compaction-interval="+compactionInterval.String(), "--bind-address=127.0.0.1", "--secure-port="+port, "--advertise-address="+peerAddress,
		"--tls-cert-file="+server, "--tls-private-key-file="+server, "--client-ca-file="+ca.file, "--authorization-mode=Node,RBAC", "--service-cluster-ip-range=10.96.0.0/16",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+server, "--service-account-signing-key-file="+server)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(t, cmd.Start())
	p.process = cmd.Process
	go func() { p.exited <- cmd.Wait() }()
	t.Cleanup(p.kill)
	cfg, err := clientConfig(p.kubeconfig)
	must(t, err)
	p.clientset, p.dynamic = kubernetes.NewForConfigOrDie(cfg), dynamic.NewForConfigOrDie(cfg)
	eventually(t, startLimit, func() error { return ready(p.clientset) })
	return p
}

// end stops it as an operator would; it must end by itself.
func (p *peer) end() {
	p.t.Helper()
	must(p.t, p.process.Signal(syscall.SIGTERM))
	select {
	case err := <-p.exited:
		p.process = nil
		must(p.t, err)
	case <-time.After(time.Minute):
		p.t.Fatal("the kube-apiserver does not end")
	}
}

func (p *peer) kill() {
	if p.t.Failed() {
		p.t.Logf("end of the kube-apiserver's log:\n%s", daemon.Tail(p.log, 30))
	}
	if p.process != nil {
		_ = p.process.Kill()
		<-p.exited
	}
}

// kubectl runs the real kubectl against it.
func (p *peer) kubectl(input string, args ...string) string {
	p.t.Helper()
	cmd := exec.Command(p.kubectlBin, append([]string{"--kubeconfig", p.kubeconfig}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	a := finish(p.t, cmd)
	if a.code != 0 {
		p.t.Fatalf("kubectl %s: exit code %d: %s", strings.Join(args, " "), a.code, a.err)
	}
	return a.out
}

// harmless are errors that it logs with any etcd, about a client that went away while it started, or about what it then mends itself.
var harmless = []string{"The manifest file is empty, ignoring.", `"Post-timeout activity"`, "is not allocated; repairing"}

// complaints are the other errors of its log.
func (p *peer) complaints() (lines []string) {
	text, err := os.ReadFile(p.log)
	must(p.t, err)
	for line := range strings.Lines(string(text)) {
		bad := strings.HasPrefix(line, "E") || strings.HasPrefix(line, "F")
		for _, known := range harmless {
			bad = bad && !strings.Contains(line, known)
		}
		if bad {
			lines = append(lines, line)
		}
	}
	return lines
}
