package helper

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/opencontainers/runc/libcontainer"
	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/kubelet/runtime/shim"
	"github.com/nodeactor/nodeactor/kubelet/runtime/wire"
)

// execProcess runs one more process in a container with this process's own streams, reports its pid, and becomes its waiter.
func execProcess(c *call) error {
	var r wire.ExecRequest
	if err := c.decode(&r); err != nil {
		return err
	}
	container, err := libcontainer.Load(r.Layout.State(), r.ID)
	if err != nil {
		return classed{wire.ClassCreate, err}
	}
	// In a frozen container the process would hang before it is one.
	if status, err := container.Status(); err != nil || status != libcontainer.Running {
		return classed{wire.ClassCreate, errors.Join(fmt.Errorf("container %s is %s", r.ID, status), err)}
	}
	process := &libcontainer.Process{
		Args: r.Args, Env: r.Env, Cwd: r.Cwd, UID: r.UID, GID: r.GID, AdditionalGroups: r.Groups, Rlimits: container.Config().Rlimits,
	}
	if r.Tty {
		process.ConsoleSocket = os.NewFile(wire.FDConsole, "console")
		process.ConsoleWidth, process.ConsoleHeight = r.Width, r.Height
	} else {
		process.Stdin, process.Stdout, process.Stderr = os.Stdin, os.Stdout, os.Stderr
	}
	if err := container.Run(process); err != nil {
		return classify(err)
	}
	pid, err := process.Pid()
	if err != nil {
		return err
	}
	awaitExec(pid)
	if err := c.answer(wire.Reply{PID: pid}); err != nil {
		return err
	}
	return becomeWaiter(c, pid)
}

func becomeWaiter(c *call, pid int) error {
	if _, err := unix.FcntlInt(c.reply.Fd(), unix.F_SETFD, 0); err != nil {
		return err
	}
	argv := []string{shim.NameWait, strconv.Itoa(pid), strconv.Itoa(int(c.reply.Fd()))}
	return fmt.Errorf("cannot become the waiter: %w", unix.Exec("/proc/self/exe", argv, []string{}))
}
