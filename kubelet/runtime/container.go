package runtime

import (
	"encoding/json"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/kubelet/runtime/wire"
)

// containerRecord is what the ledger has of a container, from before it is made until after it is gone.
type containerRecord struct {
	Spec      ContainerSpec
	Cgroup    string
	CreatedAt time.Time
	Pause     bool
}

// container is one container that has been started.
type container struct {
	record containerRecord
	pid    int
	// watched is the pidfd whose end is the container's: its shim's, or when that was killed, its main process's. -1 when it
	// has exited.
	watched int
	// shimGone says that watched is the main process's.
	shimGone bool
	// main is the main process's pidfd, -1 when that was gone before it could be opened.
	main      int
	startedAt time.Time
	exit      *exit
	// broken: the start failed and could not be undone; only removal remains.
	broken bool
}

// exit is how a container ended.
type exit struct {
	code, signal int
	reason       string
	at           time.Time
}

func (c *container) running() bool { return c.exit == nil && !c.broken }

// release closes what is held of the container's processes.
func (c *container) release(p *poller) {
	if c.main >= 0 && c.main != c.watched {
		unix.Close(c.main)
	}
	if c.watched >= 0 {
		p.forget(c.watched)
	}
	c.main, c.watched = -1, -1
}

// observe looks whether a running container has ended, and if so records and announces it. e.mu is held.
func (e *Engine) observe(c *container) {
	if !c.running() || c.watched < 0 || !awaitReadable(c.watched, 0) {
		return
	}
	id := c.record.Spec.ID
	if !c.shimGone {
		reap(c.watched)
		if found, ok := readExit(e.layout.Exit(id)); ok {
			e.ended(c, found)
			return
		}
		if c.main >= 0 && !awaitReadable(c.main, 0) {
			e.cfg.Log.Warn("the shim of a running container was killed; its log ends here", "container", id)
			e.poll.forget(c.watched)
			c.watched, c.shimGone = c.main, true
			e.poll.watch(c.watched)
			return
		}
	}
	e.ended(c, e.unseenExit(c.main))
}

func (e *Engine) ended(c *container, how *exit) {
	c.exit = how
	c.release(e.poll)
	if c.record.Pause {
		return
	}
	select {
	case e.events <- Event{PodUID: c.record.Spec.PodUID, ID: c.record.Spec.ID}:
	default: // List has it
	}
}

// unseenExit is the end of a process nobody reported. Newer kernels still know its status.
func (e *Engine) unseenExit(pidfd int) *exit {
	if status, ok := pidfdExitStatus(pidfd); ok {
		return exitOf(status, 0, e.cfg.Clock.Now())
	}
	return &exit{code: 128 + int(unix.SIGKILL), signal: int(unix.SIGKILL), reason: ReasonUnknown, at: e.cfg.Clock.Now()}
}

// readExit reads the shim's exit file.
func readExit(path string) (*exit, bool) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, false
	}
	var found wire.Exit
	if json.Unmarshal(raw, &found) != nil {
		return nil, false
	}
	return exitOf(found.Status, found.OOMKills, time.Unix(0, found.TimeNanos)), true
}

// exitOf is a wait status in the words of Kubernetes. A process killed for lack of memory counts as the container's end
// only when the container did end badly.
func exitOf(status int, oomKills int64, at time.Time) *exit {
	ws := unix.WaitStatus(status)
	out := &exit{code: ws.ExitStatus(), reason: ReasonCompleted, at: at}
	if ws.Signaled() {
		out.signal = int(ws.Signal())
		out.code = 128 + out.signal
	}
	switch {
	case out.code != 0 && oomKills > 0:
		out.reason = ReasonOOMKilled
	case out.code != 0:
		out.reason = ReasonError
	}
	return out
}

func readStarted(path string) (*wire.Started, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var s wire.Started
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, err
	}
	return &s, nil
}

// openMain opens the main process's pidfd. The exit file is written before the process is reaped, so if it is missing
// afterwards, the pid was still the container's.
func (e *Engine) openMain(id string, pid int) int {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1
	}
	if _, err := os.Stat(e.layout.Exit(id)); !errors.Is(err, os.ErrNotExist) {
		unix.Close(fd)
		return -1
	}
	return fd
}

// view is the container for the caller. e.mu is held.
func (c *container) view() Container {
	s := &c.record.Spec
	v := Container{
		ID: s.ID, PodUID: s.PodUID, Name: s.Name, Attempt: s.Attempt, Labels: s.Labels, LogPath: s.LogPath, Tty: s.Tty, Stdin: s.Stdin,
		State: Running, PID: c.pid, CreatedAt: c.record.CreatedAt, StartedAt: c.startedAt, CgroupPath: c.record.Cgroup,
	}
	if c.exit != nil {
		v.State, v.PID = Exited, 0
		v.ExitCode, v.Signal, v.Reason, v.FinishedAt = c.exit.code, c.exit.signal, c.exit.reason, c.exit.at
	}
	return v
}
