package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	settleTime   = 5 * time.Second
	startLimit   = 2 * time.Minute
	stopLimit    = 30 * time.Second
	pollInterval = 5 * time.Millisecond
	// logTail is how many lines of a failed node's log are shown.
	logTail = 40
)

// side is one of the two systems that are compared.
type side interface {
	label() string
	// start starts it on an empty directory and waits until it is usable; the line says how long that took.
	start(ctx context.Context) (line, error)
	kubeconfig() string
	processes() []process
	// again starts it on the directory as it is, after its processes were killed, and waits until it is usable.
	again(ctx context.Context) error
	// profile starts profiling under a name, where the side can be profiled and that was asked for; finish ends it.
	profile(name string) (finish func())
	// extra runs what only this side has.
	extra(ctx context.Context, r *results, round int) error
	// stop ends all its processes and removes its directory.
	stop() error
}

// peer is the upstream control plane, run by the kit's own script.
type peer struct {
	options
	dir   string
	procs []process
}

func (p *peer) label() string      { return "upstream" }
func (p *peer) kubeconfig() string { return filepath.Join(p.dir, "admin.kubeconfig") }
func (p *peer) processes() []process {
	return p.procs
}

func (p *peer) script(ctx context.Context, verb string, further ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "bash", filepath.Join(p.kit, "upstream", "run.sh"), verb)
	cmd.Env = append(append(os.Environ(), "PEER_BIN="+p.peerBin, "PEER_DIR="+p.dir, "PEER_TUNED=1"), further...)
	// The script leaves its servers running in the background: they must not hold our pipe open.
	stdout, err := os.CreateTemp("", "nabench-peer-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(stdout.Name())
	defer stdout.Close()
	cmd.Stdout, cmd.Stderr = stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("cannot %s the peer: %w; see the logs in %s", verb, err, p.dir)
	}
	return os.ReadFile(stdout.Name())
}

func (p *peer) start(ctx context.Context) (line, error) {
	printed, err := p.script(ctx, "start")
	if err != nil {
		return nil, err
	}
	boot := line{}
	if err := json.Unmarshal(bytes.TrimSpace(printed), &boot); err != nil {
		return nil, fmt.Errorf("cannot read the peer's boot times %q: %w", printed, err)
	}
	boot["api_s"], boot["usable_s"] = boot["apiserver_readyz_s"], boot["default_serviceaccount_s"]
	return boot, p.find(ctx)
}

// find notes the processes that the script has started.
func (p *peer) find(ctx context.Context) error {
	list, err := p.script(ctx, "procs")
	if err != nil {
		return err
	}
	p.procs, err = parseProcesses(strings.TrimSpace(string(list)))
	return err
}

func (p *peer) again(ctx context.Context) error {
	// The script takes a process that was killed for running until its parent has noticed, which may be never in a container.
	for _, process := range p.procs {
		if err := os.Remove(filepath.Join(p.dir, process.name+".pid")); err != nil {
			return err
		}
	}
	if _, err := p.script(ctx, "start", "PEER_KEEP=1"); err != nil {
		return err
	}
	return p.find(ctx)
}

func (p *peer) profile(string) func() { return func() {} }

func (p *peer) extra(context.Context, *results, int) error { return nil }

func (p *peer) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*stopLimit)
	defer cancel()
	_, err := p.script(ctx, "stop")
	if err == nil {
		err = os.RemoveAll(p.dir)
	}
	return err
}

// own is one nodeactor node.
type own struct {
	options
	dir, pprofAddr string
	further        []string // arguments of the node
	args           []string // all of them
	cmd            *exec.Cmd
	exited         chan error
	log            *os.File
}

func (n *own) label() string      { return "nodeactor" }
func (n *own) kubeconfig() string { return filepath.Join(n.dir, "admin.kubeconfig") }
func (n *own) processes() []process {
	return []process{{"nodeactor", n.cmd.Process.Pid}}
}

func freeAddr() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "127.0.0.1:0"
	}
	defer l.Close()
	return l.Addr().String()
}

func (n *own) cgroup() string { return "/nabench" + fmt.Sprint(os.Getpid()) + filepath.Base(n.dir) }

func (n *own) start(ctx context.Context) (line, error) {
	if err := os.MkdirAll(n.dir, 0o700); err != nil {
		return nil, err
	}
	log, err := os.Create(n.dir + ".log")
	if err != nil {
		return nil, err
	}
	n.log = log
	n.args = []string{
		"run", "--data-dir", n.dir, "--node-name", "bench", "--api-addr", freeAddr(), "--kubelet-addr", freeAddr(),
		"--etcd-addr", freeAddr(), "--cgroup-root", n.cgroup(), "--pod-cidr", "10.199.0.0/24", "--log-level", "warn",
	}
	n.args = append(n.args, n.further...)
	if n.pprof != "" {
		n.pprofAddr = freeAddr()
		n.args = append(n.args, "--pprof-addr", n.pprofAddr)
	}
	return n.launch(ctx)
}

func (n *own) again(ctx context.Context) error {
	<-n.exited
	_, err := n.launch(ctx)
	return err
}

// launch starts the node's process and waits until it is usable.
func (n *own) launch(ctx context.Context) (line, error) {
	n.cmd = exec.Command(filepath.Join(n.bin, "nodeactor"), n.args...)
	n.cmd.Stdout, n.cmd.Stderr = n.log, n.log
	began := time.Now()
	if err := n.cmd.Start(); err != nil {
		return nil, err
	}
	n.exited = make(chan error, 1)
	go func() { n.exited <- n.cmd.Wait() }()
	boot, err := n.awaitBoot(ctx, began)
	if err != nil {
		n.showLog()
	}
	return boot, err
}

// showLog prints the end of the node's log, which is about to be removed.
func (n *own) showLog() {
	b, err := os.ReadFile(n.log.Name())
	if err != nil {
		return
	}
	lines := strings.SplitAfter(string(b), "\n")
	fmt.Fprint(os.Stderr, strings.Join(lines[max(0, len(lines)-logTail):], ""))
}

// extra times pod starts and, when asked for, the large scheduling run; both once.
func (n *own) extra(ctx context.Context, r *results, round int) error {
	if round > 0 {
		return nil
	}
	if n.podStarts > 0 {
		if err := n.timePodStarts(ctx, r); err != nil {
			return err
		}
	}
	if n.blast > 0 {
		if err := n.blastRadius(ctx, r); err != nil {
			return err
		}
	}
	if n.large {
		return n.kbenchInto(ctx, r, "large_", "--only", "deploy", "--nodes", "5000", "--pods", "10000", "--heartbeat=false")
	}
	return nil
}

// stop ends the node, then removes what it left on purpose: its containers and its directory.
func (n *own) stop() error {
	if n.cmd == nil || n.cmd.Process == nil {
		return nil
	}
	_ = n.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-n.exited:
	case <-time.After(stopLimit):
		_ = n.cmd.Process.Kill()
		<-n.exited
	}
	n.log.Close()
	reset := exec.Command(filepath.Join(n.bin, "nodeactor"), "reset", "--yes", "--data-dir", n.dir, "--cgroup-root", n.cgroup())
	if printed, err := reset.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot reset the node: %w: %s", err, printed)
	}
	return os.RemoveAll(n.dir)
}
