package helper

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/opencontainers/runc/libcontainer/specconv"
	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/kubelet/runtime/shim"
	"github.com/nodeactor/nodeactor/kubelet/runtime/wire"
)

const (
	// execPollMS and execPolls bound the wait for the container's init to become the user's program.
	execPollMS = 1
	execPolls  = 2000
	// shimOOMScore keeps a shim until almost last, as the kubelet keeps pause containers.
	shimOOMScore = "-998"
)

// startContainer makes and starts a container and then becomes its shim; it returns only when that failed, and then
// nothing is left.
func startContainer(c *call) error {
	var r wire.StartRequest
	if err := c.decode(&r); err != nil {
		return err
	}
	err := c.start(&r)
	if undo := removeContainer(r.Layout, wire.Removal{ID: r.Spec.ID, Cgroup: r.Cgroup}, failedStartWaitMS); undo != nil {
		c.note("cannot undo the start of container %s: %v", r.Spec.ID, undo)
	}
	return classify(err)
}

func (c *call) start(r *wire.StartRequest) error {
	dir := r.Layout.Container(r.Spec.ID)
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return err
	}
	lock, err := lockShim(r.Layout.Lock(r.Spec.ID))
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	io, err := openIO(r)
	if err != nil {
		return err
	}
	if err := prepareRootfs(r); err != nil {
		return err
	}
	pid, cgroup, err := run(r, io)
	if err != nil {
		return err
	}
	// From here on this is a shim, not a helper that the next daemon would end.
	if err := unix.Close(wire.FDAlive); err != nil {
		return err
	}
	if err := writeStarted(r.Layout.Started(r.Spec.ID), pid); err != nil {
		return err
	}
	_ = c.answer(wire.Reply{PID: pid}) // a daemon that is gone adopts the container at its next start
	return becomeShim(r, io, lock, pid, cgroup)
}

func prepareRootfs(r *wire.StartRequest) error {
	if r.Pause {
		return preparePause(r)
	}
	return mountRootfs(r.Layout, r.Spec.ID, r.Spec.Rootfs.Layers)
}

// run starts the container's process; cgroup is its directory for memory accounting.
func run(r *wire.StartRequest, io *stdio) (pid int, cgroup *cgroupDirs, err error) {
	config, err := libcontainerConfig(r)
	if err != nil {
		return 0, nil, err
	}
	if err := os.MkdirAll(r.Layout.State(), 0o700); err != nil {
		return 0, nil, err
	}
	container, err := libcontainer.Create(r.Layout.State(), r.Spec.ID, config)
	if err != nil {
		return 0, nil, err
	}
	process := initProcess(r, config)
	io.give(process)
	if err := container.Run(process); err != nil {
		return 0, nil, err
	}
	if err := io.started(); err != nil {
		return 0, nil, err
	}
	if pid, err = process.Pid(); err != nil {
		return 0, nil, err
	}
	awaitExec(pid)
	state, err := container.State()
	if err != nil {
		return 0, nil, err
	}
	return pid, cgroupDirsOf(state.CgroupPaths), nil
}

func libcontainerConfig(r *wire.StartRequest) (*configs.Config, error) {
	spec, err := ociSpec(r)
	if err != nil {
		return nil, err
	}
	config, err := specconv.CreateLibcontainerConfig(&specconv.CreateOpts{CgroupName: r.Spec.ID, Spec: spec})
	if err != nil {
		return nil, err
	}
	for _, l := range rlimits(r.Spec.Rlimits) {
		n, ok := rlimitNumbers[l.Type]
		if !ok {
			return nil, fmt.Errorf("cannot set limit %s: unknown", l.Type)
		}
		config.Rlimits = append(config.Rlimits, configs.Rlimit{Type: n, Soft: l.Soft, Hard: l.Hard})
	}
	return config, nil
}

func initProcess(r *wire.StartRequest, config *configs.Config) *libcontainer.Process {
	cwd := r.Spec.Cwd
	if cwd == "" {
		cwd = "/"
	}
	return &libcontainer.Process{
		Init: true, Args: r.Spec.Args, Env: wire.Environment(&r.Spec, &r.Sandbox), Cwd: cwd,
		UID: r.Spec.UID, GID: r.Spec.GID, AdditionalGroups: r.Spec.Groups, Rlimits: config.Rlimits,
	}
}

// awaitExec returns when pid is the user's program or gone. Before, a signal would hit the Go code of the container's
// init, which dies of it with a code of its own.
func awaitExec(pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	for range execPolls {
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err != nil || !strings.HasPrefix(string(comm), "runc:[") {
			return
		}
		if n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, execPollMS); n > 0 {
			return
		}
	}
}

func writeStarted(path string, pid int) error {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME, &now); err != nil {
		return err
	}
	ticks, _ := wire.StartTicks(pid) // 0 when it has ended already
	raw, err := json.Marshal(wire.Started{PID: pid, StartTicks: ticks, BootID: wire.BootID(), TimeNanos: now.Nano()})
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".tmp", raw, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

// becomeShim executes this binary again under the shim's name; the C part takes it from there.
func becomeShim(r *wire.StartRequest, io *stdio, lock *os.File, pid int, dirs *cgroupDirs) error {
	flags := "-"
	if r.Spec.Tty {
		flags += "t"
	}
	if r.Spec.StdinOnce {
		flags += "o"
	}
	if r.PausePID != 0 || r.Sandbox.HostPID {
		flags += "k"
	}
	keep := func(f *os.File) string {
		if f == nil {
			return "-1"
		}
		_, err := unix.FcntlInt(f.Fd(), unix.F_SETFD, 0)
		if err != nil {
			return "-1"
		}
		return strconv.Itoa(int(f.Fd()))
	}
	keep(lock)
	argv := []string{
		shim.NameShim, r.Spec.ID, strconv.Itoa(pid), r.Layout.Exit(r.Spec.ID), r.Spec.LogPath,
		keep(io.log), keep(io.stdout), keep(io.stderr), keep(io.stdin), keep(io.listen), dirs.oomFile, dirs.procs, flags,
	}
	if mayRaise() { // a host short of memory should not lose the one who knows the exit code
		_ = os.WriteFile("/proc/self/oom_score_adj", []byte(shimOOMScore), 0)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	return fmt.Errorf("cannot become the shim: %w", unix.Exec("/proc/self/exe", argv, []string{}))
}

// cgroupDirs are the files of a container's cgroup the shim reads.
type cgroupDirs struct{ oomFile, procs string }

func cgroupDirsOf(paths map[string]string) *cgroupDirs {
	if memory, ok := paths["memory"]; ok { // version 1, whether or not the unified hierarchy is mounted beside it
		return &cgroupDirs{oomFile: filepath.Join(memory, "memory.oom_control"), procs: paths["devices"]}
	}
	return &cgroupDirs{oomFile: filepath.Join(paths[""], "memory.events"), procs: paths[""]}
}
