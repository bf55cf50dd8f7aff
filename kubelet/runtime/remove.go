package runtime

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/kubelet/runtime/wire"
	"github.com/nodeactor/nodeactor/supervision"
)

// Signal implements Runtime.
func (e *Engine) Signal(ctx context.Context, id string, sig syscall.Signal) error {
	if err := supervision.CheckFence(ctx); err != nil {
		return fmt.Errorf("cannot signal container %s: %w", id, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	c, err := e.find(id)
	if err != nil {
		return fmt.Errorf("cannot signal container %s: %w", id, err)
	}
	e.observe(c)
	if !c.running() || c.main < 0 {
		return fmt.Errorf("cannot signal container %s: %w", id, ErrNotRunning)
	}
	switch err := unix.PidfdSendSignal(c.main, sig, nil, 0); err {
	case nil:
		return nil
	case unix.ESRCH:
		return fmt.Errorf("cannot signal container %s: %w", id, ErrNotRunning)
	default:
		return fmt.Errorf("cannot signal container %s: %w", id, err)
	}
}

// find is a container by id; e.mu is held. Pause and broken ones are not found.
func (e *Engine) find(id string) (*container, error) {
	c := e.containers[id]
	if c == nil || c.broken || c.record.Pause {
		return nil, ErrNotFound
	}
	return c, nil
}

// lookup is find for those that do not hold e.mu; it says whether the container runs.
func (e *Engine) lookup(id string) (*container, bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c, err := e.find(id)
	if err != nil {
		return nil, false, fmt.Errorf("container %s: %w", id, err)
	}
	e.observe(c)
	return c, c.running(), nil
}

// Kill implements Runtime.
func (e *Engine) Kill(ctx context.Context, id string) error {
	if err := supervision.CheckFence(ctx); err != nil {
		return fmt.Errorf("cannot kill container %s: %w", id, err)
	}
	c, _, err := e.lookup(id)
	if err != nil {
		return fmt.Errorf("cannot kill: %w", err)
	}
	request := wire.KillRequest{Cgroup: c.record.Cgroup, WaitMS: int(killWait / time.Millisecond)}
	if _, err := e.call(ctx, removeDeadline, wire.OpKill, request); err != nil {
		return fmt.Errorf("cannot kill container %s: %w", id, err)
	}
	return e.awaitExit(ctx, id)
}

// awaitExit waits until the shim has left its exit file: nothing of the container lives any more.
func (e *Engine) awaitExit(ctx context.Context, id string) error {
	const look = 20 * time.Millisecond
	for waited := time.Duration(0); waited < killWait; waited += look {
		c, running, err := e.lookup(id)
		if err != nil || !running {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		fd := e.dupWatched(c)
		awaitReadable(fd, look)
		unix.Close(fd)
	}
	return fmt.Errorf("cannot kill container %s: its shim does not end", id)
}

// dupWatched is a copy of the watched pidfd that nobody else closes.
func (e *Engine) dupWatched(c *container) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	fd, err := unix.FcntlInt(uintptr(c.watched), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return fd
}

// RemoveContainer implements Runtime.
func (e *Engine) RemoveContainer(ctx context.Context, id string) error {
	e.mu.Lock()
	c := e.containers[id]
	e.mu.Unlock()
	if c == nil || c.record.Pause {
		return nil
	}
	leave, err := e.gates.enter(ctx, c.record.Spec.PodUID)
	if err != nil {
		return err
	}
	defer leave()
	if !e.known(id) {
		return nil
	}
	return e.remove(ctx, c)
}

// remove removes a container and then its record; the gate is held.
func (e *Engine) remove(ctx context.Context, c *container) error {
	id := c.record.Spec.ID
	request := wire.RemoveRequest{
		Layout: e.layout, Containers: []wire.Removal{{ID: id, Cgroup: c.record.Cgroup}}, WaitMS: int(killWait / time.Millisecond),
	}
	if err := e.heavy(ctx, removeDeadline, wire.OpRemove, request); err != nil {
		return fmt.Errorf("cannot remove container %s: %w", id, err)
	}
	return e.forget(c)
}

// forget deletes the record of a container of which nothing is left.
func (e *Engine) forget(c *container) error {
	id := c.record.Spec.ID
	if err := e.cfg.Ledger.Delete(bucketContainers, id); err != nil {
		return fmt.Errorf("cannot forget container %s: %w", id, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.watched >= 0 && !c.shimGone && !awaitReadable(c.watched, reapWait) {
		e.cfg.Log.Warn("a shim outlives its container", "container", id)
	} else if c.watched >= 0 {
		reap(c.watched)
	}
	c.release(e.poll)
	delete(e.containers, id)
	return nil
}
