package helper

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/kubelet/runtime/wire"
)

const (
	// killRoundMS is how long one round of a kill waits before it looks again: processes may have forked meanwhile.
	killRoundMS = 5
	// failedStartWaitMS bounds the kill of what a failed start left.
	failedStartWaitMS = 5000
)

func killCgroup(c *call) error {
	var r wire.KillRequest
	if err := c.decode(&r); err != nil {
		return err
	}
	if err := killAll(r.Cgroup, r.WaitMS); err != nil {
		return err
	}
	return c.answer(wire.Reply{})
}

// killAll kills every process in the group at path and below until none is left; the error lists those that remain
// after waitMS.
func killAll(path string, waitMS int) error {
	dirs, err := hierarchies(path)
	if err != nil {
		return err
	}
	var alive []int
	for waited := 0; ; waited += killRoundMS {
		alive = processes(dirs)
		if len(alive) == 0 {
			return nil
		}
		if waited >= waitMS {
			return survivors(alive)
		}
		killOnce(dirs, alive)
		awaitOne(alive[0])
	}
}

// processes are the members of all hierarchies: a privileged process may have left some of them.
func processes(dirs []string) []int {
	var all []int
	for _, dir := range dirs {
		pids, err := cgroups.GetAllPids(dir)
		if err == nil {
			all = append(all, pids...)
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(pid int) bool { return pid == 0 })
}

// killOnce kills before it thaws, so that nothing frozen runs again. The kernel's own kill of a v2 group misses no fork.
func killOnce(dirs []string, pids []int) {
	for _, dir := range dirs {
		_ = writeExisting(filepath.Join(dir, "cgroup.kill"), "1")
	}
	for _, pid := range pids {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	for _, dir := range dirs {
		thaw(dir)
	}
}

func thaw(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = writeExisting(filepath.Join(path, "freezer.state"), "THAWED")
			_ = writeExisting(filepath.Join(path, "cgroup.freeze"), "0")
		}
		return nil
	})
}

func writeExisting(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// awaitOne waits a round, or less when pid ends.
func awaitOne(pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, killRoundMS)
}
