package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/kubelet/network"
	kruntime "github.com/nodeactor/nodeactor/kubelet/runtime"
	"github.com/nodeactor/nodeactor/store/ledger"
	"github.com/nodeactor/nodeactor/supervision"
)

const (
	// rememberFile holds the settings that reset needs to find what the node has made.
	rememberFile = "node.json"
	// daemonStop bounds waiting for a running daemon to end before it is killed.
	daemonStop = 40 * time.Second
	// pollEvery is how often it is looked at.
	pollEvery = 100 * time.Millisecond
)

// recorded is the configuration that the node on dir last ran with.
func recorded(dir string) (c Config, ok bool) {
	b, err := os.ReadFile(filepath.Join(dir, rememberFile))
	return c, err == nil && json.Unmarshal(b, &c) == nil
}

// LastConfig is the configuration that the node on a data directory runs with, or ran with last; the defaults when none is known.
func LastConfig(dir string) Config {
	c, _ := recorded(dir)
	c.DataDir = dir
	return c.WithDefaults()
}

// remember writes the settings down before anything is made with them. A directory keeps
// its node's name: under another one, its pods would belong to nobody.
func remember(c Config) error {
	if b, err := os.ReadFile(filepath.Join(c.DataDir, rememberFile)); err == nil && len(b) > 0 && !json.Valid(b) {
		return fmt.Errorf("%w: %s is damaged and does not say any more whose directory this is; put it back from a copy, or remove it if --node-name, "+
			"--cgroup-root and --store-endpoints are the same as before", ErrConfig, filepath.Join(c.DataDir, rememberFile))
	}
	if old, ok := recorded(c.DataDir); ok && old.NodeName != c.NodeName {
		return fmt.Errorf("%w: data directory %s belongs to node %s, not %s; start it with --node-name %s, or choose another directory",
			ErrConfig, c.DataDir, old.NodeName, c.NodeName, old.NodeName)
	}
	c.FaultPolicies = nil // they make nothing that has to be removed
	if err := writeJSON(filepath.Join(c.DataDir, rememberFile), c); err != nil {
		return fmt.Errorf("cannot write data directory %s: %w", c.DataDir, cause(err))
	}
	return nil
}

// recall is the configuration the node last ran with; what is given beats it.
func recall(c Config) Config {
	old, ok := recorded(c.DataDir)
	if !ok {
		return c
	}
	old.DataDir = c.DataDir
	if c.CgroupRoot != defaultCgroupRoot(c.DataDir) {
		old.CgroupRoot = c.CgroupRoot
	}
	return old.WithDefaults()
}

// Describe says what Reset would remove, or returns why it would refuse.
func Describe(c Config, say func(format string, args ...any)) error {
	if _, err := os.Stat(c.DataDir); err == nil {
		if err := belongsToANode(c.DataDir); err != nil {
			return err
		}
	}
	c = recall(c)
	bridge, prefix := network.Names(c.DataDir)
	say("would remove:")
	if pid := Owner(c.DataDir); pid != 0 {
		say("  the node process, pid %d", pid)
	}
	say("  all containers of the node and the cgroups below %s", c.CgroupRoot)
	say("  the bridge %s, its pods' links and the firewall table nodeactor_%s", bridge, prefix)
	say("  the data directory %s with all objects, snapshots, images and keys", c.DataDir)
	return nil
}

// Reset stops the node on c.DataDir and removes everything it has made on this host,
// saying each step. It may be repeated after an error. The error wraps ErrNotANode, and nothing
// was touched, when the directory is not one that a node has made.
func Reset(ctx context.Context, c Config, say func(format string, args ...any)) error {
	if _, err := os.Stat(c.DataDir); errors.Is(err, os.ErrNotExist) {
		say("there is no data directory %s: nothing to remove", c.DataDir)
		return nil
	}
	if err := belongsToANode(c.DataDir); err != nil {
		return err
	}
	c = recall(c)
	if err := stopDaemon(ctx, c.DataDir, say); err != nil {
		return err
	}
	lock, err := Lock(c.DataDir)
	if err != nil {
		return err
	}
	defer lock.Release()
	if err := claimCgroupRoot(c); err != nil {
		return err
	}
	if err := removeWorkloads(ctx, c, say); err != nil {
		return err
	}
	if err := unmountBelow(c.DataDir, say); err != nil {
		return err
	}
	left, err := removeDataDir(c.DataDir)
	if err != nil {
		return fmt.Errorf("cannot remove data directory %s: %w", c.DataDir, cause(err))
	}
	releaseCgroupRoot(c)
	if left != "" {
		say("removed all that the node has made in data directory %s; %s is not of it and stays", c.DataDir, left)
		return nil
	}
	say("removed data directory %s", c.DataDir)
	return nil
}

// stopDaemon ends the process that owns the directory, politely first.
func stopDaemon(ctx context.Context, dir string, say func(string, ...any)) error {
	pid := Owner(dir)
	if pid == 0 {
		return nil
	}
	say("stopping the node, pid %d", pid)
	clock := supervision.RealClock()
	limit := clock.Now().Add(daemonStop)
	_ = syscall.Kill(pid, syscall.SIGTERM)
	for Owner(dir) == pid {
		if clock.Now().After(limit) {
			say("it does not end: killing it")
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err := clock.Sleep(ctx, pollEvery); err != nil {
			return err
		}
	}
	return nil
}

// removeWorkloads removes containers, sandboxes, cgroups and network.
func removeWorkloads(ctx context.Context, c Config, say func(string, ...any)) error {
	log := slog.New(slog.DiscardHandler)
	l, err := ledger.Open(filepath.Join(c.DataDir, "ledger.db"))
	if err != nil {
		return fmt.Errorf("cannot tell what the node has made: %w", err)
	}
	defer l.Close()
	engine, err := openEngine(c, l, log, supervision.RealClock())
	if err != nil {
		return err
	}
	defer engine.Close()
	if _, err := engine.Recover(ctx); err != nil {
		say("some of what the node has made is damaged: %v", err)
	}
	pods, _ := engine.List(ctx)
	if err := engine.RemoveAll(ctx); err != nil {
		return fmt.Errorf("cannot remove containers: %w", err)
	}
	say("removed %d pods and the cgroups below %s", len(pods), c.CgroupRoot)
	_, net, err := openNetwork(c, l, log)
	if err != nil {
		return err
	}
	defer net.Close()
	if err := net.Teardown(ctx); err != nil {
		return fmt.Errorf("cannot remove the pod network: %w", err)
	}
	bridge, _ := network.Names(c.DataDir)
	say("removed bridge %s, its links and firewall table", bridge)
	return nil
}

// unmountBelow takes down every mount below dir, deepest first: nothing may be deleted
// across a mount point.
func unmountBelow(dir string, say func(string, ...any)) error {
	points, err := mountsBelow(dir)
	if err != nil {
		return err
	}
	for _, p := range points {
		if err := unix.Unmount(p, unix.UMOUNT_NOFOLLOW); err != nil {
			if err = unix.Unmount(p, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
				return fmt.Errorf("cannot unmount %s: %w", p, err)
			}
		}
		say("unmounted %s", p)
	}
	return nil
}

func mountsBelow(dir string) (points []string, err error) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		if len(fields) > 4 && strings.HasPrefix(fields[4], dir+"/") {
			points = append(points, strings.ReplaceAll(fields[4], `\040`, " "))
		}
	}
	slices.SortFunc(points, func(a, b string) int { return len(b) - len(a) })
	return points, nil
}

// runningContainers counts what keeps running without the daemon.
func (p *parts) runningContainers(ctx context.Context) (n int, err error) {
	pods, err := p.engine.List(ctx)
	for _, pod := range pods {
		for _, c := range pod.Containers {
			if c.State == kruntime.Running {
				n++
			}
		}
	}
	return n, err
}
