package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nodeactor/nodeactor/kubelet/runtime/wire"
	"github.com/nodeactor/nodeactor/supervision"
)

// StartContainer implements Runtime.
func (e *Engine) StartContainer(ctx context.Context, spec ContainerSpec) (Container, error) {
	if err := e.checkSpec(&spec); err != nil {
		return Container{}, &StartError{Reason: ReasonCreateContainer, Message: err.Error(), ExitCode: 128, Cause: err}
	}
	leave, err := e.gates.enter(ctx, spec.PodUID)
	if err != nil {
		return Container{}, err
	}
	defer leave()
	p := e.pod(spec.PodUID)
	if p == nil || !p.ready {
		return Container{}, fmt.Errorf("cannot start container %s: sandbox %s: %w", spec.ID, spec.PodUID, ErrNotFound)
	}
	if e.known(spec.ID) {
		return Container{}, fmt.Errorf("cannot start container %s: %w", spec.ID, ErrExists)
	}
	c, err := e.launch(ctx, p, containerRecord{Spec: spec, Cgroup: filepath.Join(p.record.Cgroup, spec.ID), CreatedAt: e.cfg.Clock.Now()})
	if err != nil {
		return Container{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.observe(c)
	return c.view(), nil
}

func (e *Engine) checkSpec(spec *ContainerSpec) error {
	if err := checkName("container id", spec.ID); err != nil {
		return err
	}
	if len(spec.Args) == 0 || spec.Args[0] == "" {
		return errors.New("no command specified")
	}
	if !filepath.IsAbs(spec.LogPath) {
		return fmt.Errorf("log path %q is not absolute", spec.LogPath)
	}
	for _, m := range spec.Mounts {
		if !filepath.IsAbs(m.Destination) {
			return fmt.Errorf("mount destination %q is not absolute", m.Destination)
		}
	}
	switch spec.Seccomp {
	case "", "Unconfined":
	case "RuntimeDefault":
		e.seccompNotice.Do(func() {
			e.cfg.Log.Warn("seccomp profile RuntimeDefault is accepted but not applied: this build has no seccomp")
		})
	default:
		return fmt.Errorf("seccomp profile %q is not supported", spec.Seccomp)
	}
	return nil
}

func (e *Engine) known(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.containers[id] != nil
}

// launch records, then starts a container; when it does not start, nothing is left of it, or it stays known as broken so
// that the pod's removal takes it along. The gate is held.
func (e *Engine) launch(ctx context.Context, p *pod, record containerRecord) (*container, error) {
	id := record.Spec.ID
	c := &container{record: record, watched: -1, main: -1, broken: true}
	if err := e.cfg.Ledger.Put(bucketContainers, id, record); err != nil {
		return nil, fmt.Errorf("cannot record container %s: %w", id, err)
	}
	e.mu.Lock()
	e.containers[id] = c
	e.mu.Unlock()
	if failed := e.run(ctx, p, c); failed != nil {
		undo, cancel := cleanup(ctx)
		defer cancel()
		if err := e.undoStart(undo, c); err != nil {
			e.cfg.Log.Error("cannot undo a failed start", "container", id, "error", err)
		}
		return nil, failed
	}
	return c, nil
}

// run starts the helper that becomes the shim.
func (e *Engine) run(ctx context.Context, p *pod, c *container) error {
	leave, err := e.slot(ctx)
	if err != nil {
		return startError(wire.Reply{}, err)
	}
	defer leave()
	if err := supervision.CheckFence(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, e.cfg.StartDeadline, ErrDeadline)
	defer cancel()
	request := wire.StartRequest{Layout: e.layout, Sandbox: p.record.Spec, Spec: c.record.Spec, Cgroup: c.record.Cgroup, Pause: c.record.Pause}
	if p.pause != nil {
		request.PausePID = p.pause.pid
	}
	helper, err := e.spawn(wire.OpStart, request, streams{})
	if err != nil {
		return startError(wire.Reply{}, err)
	}
	r, err := helper.next(ctx)
	e.logNotes(wire.OpStart, r.Notes)
	if err != nil || r.Error != "" {
		failed := startError(r, err)
		helper.finish(e.poll)
		return failed
	}
	helper.closeFiles()
	e.started(c, r.PID, helper.pidfd)
	return nil
}

func (e *Engine) started(c *container, pid, shim int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	id := c.record.Spec.ID
	c.pid, c.watched, c.main, c.broken = pid, shim, e.openMain(id, pid), false
	if s, err := readStarted(e.layout.Started(id)); err == nil {
		c.startedAt = time.Unix(0, s.TimeNanos)
	}
	e.poll.watch(shim)
}

// undoStart makes sure that nothing is left; the helper has usually seen to it already.
func (e *Engine) undoStart(ctx context.Context, c *container) error {
	if _, err := os.Lstat(e.layout.Container(c.record.Spec.ID)); errors.Is(err, os.ErrNotExist) {
		return e.forget(c)
	}
	return e.remove(ctx, c)
}
