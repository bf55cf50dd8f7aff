package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/test/daemon"
	"github.com/nodeactor/nodeactor/test/loopback"
)

const (
	// runPrefix marks everything that a run of these tests makes on the host.
	runPrefix = "nae2e"
	// startLimit bounds a node's start on a busy machine.
	startLimit = 60 * time.Second
	// podLimit bounds what a kubelet needs to start or stop a few pods on a busy machine.
	podLimit = 90 * time.Second
)

// host is one node under test.
type host struct {
	t       *testing.T
	bin     string
	dir     string
	home    string // of the tools: kubectl keeps a cache in it
	api     string
	kubelet string
	etcd    string
	cgroup  string
	podCIDR string
	cmd     *exec.Cmd
	exited  chan error
}

// newHost prepares a node that is not started yet; n tells several on one machine apart.
func newHost(t *testing.T, n int) *host {
	bin := daemon.Bin(t)
	daemon.Sweep(t, bin, runPrefix)
	dir, err := os.MkdirTemp("", runPrefix+"-")
	if err != nil {
		t.Fatal(err)
	}
	h := &host{
		t: t, bin: bin, dir: dir, home: t.TempDir(), api: loopback.Free(t), kubelet: loopback.Free(t), etcd: loopback.Free(t),
		cgroup: "/" + filepath.Base(dir), podCIDR: fmt.Sprintf("10.%d.0.0/24", 201+n),
	}
	t.Cleanup(h.remove)
	return h
}

func (h *host) args(extra ...string) []string {
	return append([]string{
		"run", "--data-dir", h.dir, "--node-name", "host-a", "--api-addr", h.api, "--kubelet-addr", h.kubelet,
		"--etcd-addr", h.etcd, "--cgroup-root", h.cgroup, "--pod-cidr", h.podCIDR, "--fault-injection",
	}, extra...)
}

// start runs the node and waits until it is ready.
func (h *host) start(extra ...string) {
	h.t.Helper()
	h.launch(extra...)
	h.waitReady()
}

func (h *host) launch(extra ...string) {
	h.t.Helper()
	h.cmd, h.exited = daemon.Start(h.t, h.bin, h.dir, os.O_APPEND, h.args(extra...)...)
}

func (h *host) waitReady() {
	h.t.Helper()
	h.eventually(startLimit, "the node to be Ready", func() error {
		select {
		case err := <-h.exited:
			h.exited <- err
			h.t.Fatalf("the node ended while starting: %v\n%s", err, h.tail(40))
		default:
		}
		out, err := h.try("get", "node", "host-a", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
		if err == nil && out != "True" {
			return fmt.Errorf("Ready is %q", out)
		}
		return err
	})
	h.eventually(startLimit, "the default service account", func() error {
		_, err := h.try("get", "serviceaccount", "default")
		return err
	})
}

// stop ends the node politely and returns what it said.
func (h *host) stop() string {
	h.t.Helper()
	must(h.t, h.cmd.Process.Signal(syscall.SIGTERM))
	h.waitExit(30 * time.Second)
	return h.tail(30)
}

// kill ends the node as a crash would.
func (h *host) kill() {
	h.t.Helper()
	must(h.t, h.cmd.Process.Kill())
	h.waitExit(10 * time.Second)
}

func (h *host) waitExit(limit time.Duration) {
	h.t.Helper()
	select {
	case <-h.exited:
		h.cmd = nil
	case <-time.After(limit):
		h.t.Fatalf("the node did not end within %s\n%s", limit, h.tail(40))
	}
}

// remove resets the node and its data, whatever state they are in.
func (h *host) remove() {
	if h.t.Failed() {
		h.t.Logf("end of the node's log:\n%s", h.tail(80))
	}
	h.end()
	out, err := h.reset()
	if err != nil {
		h.t.Errorf("reset: %v\n%s", err, out)
	}
	daemon.Remove(h.dir)
}

// end ends the node politely, and at last by force.
func (h *host) end() {
	if h.cmd == nil {
		return
	}
	_ = h.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-h.exited:
	case <-time.After(30 * time.Second):
		_ = h.cmd.Process.Kill()
		<-h.exited
	}
	h.cmd = nil
}

// runs holds that the process did not end meanwhile.
func (h *host) runs() {
	h.t.Helper()
	select {
	case err := <-h.exited:
		h.exited <- err
		h.t.Fatalf("the process ended: %v", err)
	default:
	}
}

func (h *host) reset() (string, error) {
	if _, err := os.Stat(h.dir); os.IsNotExist(err) {
		return "", nil
	}
	return h.run(60*time.Second, nil, "reset", "--yes", "--data-dir", h.dir, "--cgroup-root", h.cgroup)
}

func (h *host) tail(lines int) string { return daemon.Tail(h.logPath(), lines) }

func (h *host) logPath() string { return h.dir + daemon.LogSuffix }

// run calls the product's command line.
func (h *host) run(limit time.Duration, stdin []byte, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c := exec.CommandContext(ctx, filepath.Join(h.bin, "nodeactor"), args...)
	c.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(h.dir, "admin.kubeconfig"), "HOME="+h.home)
	c.Stdin = bytes.NewReader(stdin)
	var out, errOut bytes.Buffer
	c.Stdout, c.Stderr = &out, &errOut
	c.WaitDelay = time.Second
	err := c.Run()
	if err != nil {
		return out.String() + errOut.String(), fmt.Errorf("nodeactor %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errOut.String()))
	}
	return out.String(), nil
}

// try calls kubectl and may fail.
func (h *host) try(args ...string) (string, error) {
	return h.run(podLimit, nil, append([]string{"kubectl"}, args...)...)
}

// kubectl calls kubectl and must succeed.
func (h *host) kubectl(args ...string) string {
	h.t.Helper()
	out, err := h.try(args...)
	must(h.t, err)
	return out
}

// apply feeds a manifest to kubectl apply.
func (h *host) apply(manifest string, args ...string) string {
	h.t.Helper()
	out, err := h.run(podLimit, []byte(manifest), append([]string{"kubectl", "apply", "-f", "-"}, args...)...)
	must(h.t, err)
	return out
}

// get decodes kubectl's JSON of an object or list into v.
func (h *host) get(v any, args ...string) error {
	out, err := h.try(append([]string{"get", "-o", "json"}, args...)...)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(out), v)
}

// eventually waits until ok returns nil and fails the test with its last error otherwise.
func (h *host) eventually(limit time.Duration, what string, ok func() error) {
	h.t.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := ok()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("waited %s for %s: %v", limit, what, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var errNot = errors.New("not yet")

func notYet(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errNot}, args...)...)
}
