package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/kubelet/runtime/wire"
)

// Report is what Recover found.
type Report struct {
	// Adopted containers run on; Ended ones exited while nobody watched.
	Adopted, Ended int
	// HalfMade sandboxes and containers were removed: their making had been recorded, not finished.
	HalfMade int
}

// Recover brings the Engine and the host to agree after a start: helpers of an earlier process are ended, running
// containers adopted, exits that happened meanwhile learned, half-made and unknown things removed. It must succeed before
// anything else is called; it may be called again after an error.
func (e *Engine) Recover(ctx context.Context) (Report, error) {
	var report Report
	if err := e.endHelpers(ctx); err != nil {
		return report, err
	}
	if err := e.loadSandboxes(); err != nil {
		return report, err
	}
	half, err := e.loadContainers(&report)
	if err != nil {
		return report, err
	}
	report.HalfMade += len(half)
	for _, c := range half {
		if err := e.remove(ctx, c); err != nil {
			return report, err
		}
	}
	for _, uid := range e.halfMadeSandboxes() {
		report.HalfMade++
		if err := e.removePod(ctx, uid); err != nil {
			return report, err
		}
	}
	return report, e.Sweep(ctx)
}

// endHelpers kills what an earlier process left working here and takes the lock that helpers share from now on.
func (e *Engine) endHelpers(ctx context.Context) error {
	if e.alive != nil {
		return nil
	}
	const look, enough = 50 * time.Millisecond, 10 * time.Second
	for waited := time.Duration(0); ; waited += look {
		f, err := lockFile(e.layout.Helpers(), unix.LOCK_EX)
		if err == nil {
			e.alive = f
			return unix.Flock(int(f.Fd()), unix.LOCK_SH)
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || ctx.Err() != nil || waited > enough {
			return fmt.Errorf("cannot end the helpers of an earlier process: %w", err)
		}
		for _, pid := range holders(e.layout.Helpers()) {
			e.cfg.Log.Warn("killing a helper of an earlier process", "pid", pid)
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		awaitReadable(e.poll.wake, look)
	}
}

// holders are the other processes that have path open.
func holders(path string) []int {
	var out []int
	found, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range found {
		if target, err := os.Readlink(fd); err != nil || target != path {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(fd, "/")[2])
		if err == nil && pid != os.Getpid() && !slices.Contains(out, pid) {
			out = append(out, pid)
		}
	}
	return out
}

func (e *Engine) loadSandboxes() error {
	boot := wire.BootID()
	return e.cfg.Ledger.Each(bucketSandboxes, func(uid string, raw []byte) error {
		p := &pod{}
		if err := json.Unmarshal(raw, &p.record); err != nil {
			return fmt.Errorf("cannot read the record of sandbox %s: %w", uid, err)
		}
		made, err := os.ReadFile(e.layout.Ready(uid))
		p.ready = err == nil && string(made) == boot
		e.mu.Lock()
		defer e.mu.Unlock()
		e.pods[uid] = p
		return nil
	})
}

// halfMadeSandboxes never were complete; those of an earlier boot were, and stay known until their owner removes them.
func (e *Engine) halfMadeSandboxes() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []string
	for uid, p := range e.pods {
		_, err := os.Stat(e.layout.Ready(uid))
		needsPause := p.record.Spec.ShareProcessNamespace && !p.record.Spec.HostPID
		if err != nil || needsPause && p.pause == nil {
			out = append(out, uid)
		}
	}
	return out
}

// loadContainers adopts what has started and returns the others.
func (e *Engine) loadContainers(report *Report) (half []*container, err error) {
	err = e.cfg.Ledger.Each(bucketContainers, func(id string, raw []byte) error {
		c := &container{watched: -1, main: -1}
		if err := json.Unmarshal(raw, &c.record); err != nil {
			return fmt.Errorf("cannot read the record of container %s: %w", id, err)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.containers[id] = c
		started, err := readStarted(e.layout.Started(id))
		if err != nil {
			c.broken = true
			half = append(half, c)
			return nil
		}
		e.adopt(c, started)
		if c.running() {
			report.Adopted++
		} else {
			report.Ended++
		}
		if p := e.pods[c.record.Spec.PodUID]; p != nil && c.record.Pause {
			p.pause = c
		}
		return nil
	})
	return half, err
}

// adopt finds the container's processes again. e.mu is held.
func (e *Engine) adopt(c *container, s *wire.Started) {
	id := c.record.Spec.ID
	c.pid, c.startedAt = s.PID, time.Unix(0, s.TimeNanos)
	if shim := openHolder(e.layout.Lock(id)); shim >= 0 {
		c.watched, c.main = shim, e.openMain(id, s.PID)
		e.poll.watch(shim)
		return
	}
	if found, ok := readExit(e.layout.Exit(id)); ok {
		c.exit = found
		return
	}
	c.main = openSame(s)
	if c.main < 0 {
		c.exit = e.unseenExit(-1)
		return
	}
	e.cfg.Log.Warn("adopting a container whose shim was killed; its log has ended", "container", id)
	c.watched, c.shimGone = c.main, true
	e.poll.watch(c.main)
}

// openHolder opens the pidfd of a lock's holder, -1 when there is none.
func openHolder(path string) int {
	pid := wire.LockHolder(path)
	if pid == 0 {
		return -1
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1
	}
	if wire.LockHolder(path) != pid {
		unix.Close(fd)
		return -1
	}
	return fd
}

// openSame opens the pidfd of the process that started, -1 when it is gone and its pid perhaps another's.
func openSame(s *wire.Started) int {
	if s.BootID != wire.BootID() || s.StartTicks == 0 {
		return -1
	}
	fd, err := unix.PidfdOpen(s.PID, 0)
	if err != nil {
		return -1
	}
	if ticks, err := wire.StartTicks(s.PID); err != nil || ticks != s.StartTicks {
		unix.Close(fd)
		return -1
	}
	return fd
}

// Sweep removes every container, sandbox and cgroup below our directory and cgroup root that has no record. Nothing may
// be in the making meanwhile; Recover calls it.
func (e *Engine) Sweep(ctx context.Context) error {
	request := wire.SweepRequest{
		Layout: e.layout, CgroupRoot: e.cfg.CgroupRoot, Pods: map[string]string{}, Containers: map[string]string{}, WaitMS: int(killWait / time.Millisecond),
	}
	e.mu.Lock()
	for uid, p := range e.pods {
		request.Pods[uid] = p.record.Cgroup
	}
	for id, c := range e.containers {
		request.Containers[id] = c.record.Cgroup
	}
	e.mu.Unlock()
	if _, err := e.call(ctx, sweepDeadline, wire.OpSweep, request); err != nil {
		return fmt.Errorf("cannot sweep what nobody knows: %w", err)
	}
	return nil
}

// RemoveAll removes every sandbox and then sweeps: nothing of this Engine is left on the host but its empty directory.
func (e *Engine) RemoveAll(ctx context.Context) error {
	e.mu.Lock()
	var uids []string
	for uid := range e.pods {
		uids = append(uids, uid)
	}
	e.mu.Unlock()
	var failed error
	for _, uid := range uids {
		failed = errors.Join(failed, e.RemoveSandbox(ctx, uid))
	}
	return errors.Join(failed, e.Sweep(ctx))
}
