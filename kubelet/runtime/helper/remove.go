package helper

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/kubelet/runtime/wire"
)

// shimGraceMS is how long a shim may take to write its exit file once nothing of its container lives.
const shimGraceMS = 1000

func removeContainers(c *call) error {
	var r wire.RemoveRequest
	if err := c.decode(&r); err != nil {
		return err
	}
	var failed error
	for _, one := range r.Containers {
		failed = errors.Join(failed, removeContainer(r.Layout, one, r.WaitMS))
	}
	if failed != nil {
		return failed
	}
	return c.answer(wire.Reply{})
}

// removeContainer removes a container however far it came: it looks at what is there, not at what should be. The caller
// may be the container's own half-made shim.
func removeContainer(l wire.Layout, r wire.Removal, waitMS int) error {
	if err := killAll(r.Cgroup, waitMS); err != nil {
		return err
	}
	endShim(l.Lock(r.ID))
	if err := removeCgroup(r.Cgroup); err != nil {
		return err
	}
	for _, dir := range []string{filepath.Join(l.State(), r.ID), l.Container(r.ID)} {
		if err := removeTree(dir); err != nil {
			return fmt.Errorf("cannot remove container %s: %w", r.ID, err)
		}
	}
	return nil
}

// endShim gives the shim time to end by itself, then kills it.
func endShim(lock string) {
	pid := wire.LockHolder(lock)
	if pid == 0 || pid == os.Getpid() {
		return
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if wire.LockHolder(lock) != pid {
		return
	}
	set := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	if n, _ := unix.Poll(set, shimGraceMS); n > 0 {
		return
	}
	_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	_, _ = unix.Poll(set, shimGraceMS)
}

func removeCgroup(path string) error {
	dirs, err := hierarchies(path)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := cgroups.RemovePath(dir); err != nil {
			return fmt.Errorf("cannot remove cgroup: %w", err)
		}
	}
	return nil
}

func removeSandbox(c *call) error {
	var r wire.RemoveRequest
	if err := c.decode(&r); err != nil {
		return err
	}
	if err := removePod(&r); err != nil {
		return err
	}
	return c.answer(wire.Reply{})
}

// removePod kills the pod as a whole first: with a shared process namespace no single container could end before.
func removePod(r *wire.RemoveRequest) error {
	if err := killAll(r.Cgroup, r.WaitMS); err != nil {
		return err
	}
	for _, one := range r.Containers {
		if err := removeContainer(r.Layout, one, r.WaitMS); err != nil {
			return err
		}
	}
	if err := removeTree(r.Layout.Sandbox(r.PodUID)); err != nil {
		return fmt.Errorf("cannot remove sandbox %s: %w", r.PodUID, err)
	}
	return removePodCgroup(r.Layout, r.Cgroup)
}

// removePodCgroup removes the pod's group and those above it that are empty now; nobody makes a child of theirs meanwhile.
func removePodCgroup(l wire.Layout, path string) error {
	if err := removeCgroup(path); err != nil {
		return err
	}
	return withCgroupLock(l.CgroupLock(), unix.LOCK_EX, func() error {
		for parent := filepath.Dir(path); parent != "/"; parent = filepath.Dir(parent) {
			dirs, err := hierarchies(parent)
			if err != nil {
				return err
			}
			for _, dir := range dirs {
				_ = unix.Rmdir(dir) // refused while another pod is below
			}
		}
		return nil
	})
}
