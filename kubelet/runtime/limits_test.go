package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/test/hostimage"
)

func TestOutOfMemory(t *testing.T) {
	h := newHost(t)
	h.sandbox("pod1", func(s *SandboxSpec) { s.QOS = Burstable })
	eat := "x=a; while :; do x=$x$x; done"
	_, c := h.output("pod1", "exec sh -c '"+eat+"'", func(s *ContainerSpec) { s.Resources.MemoryBytes = 32 << 20 })
	if c.Reason != ReasonOOMKilled || c.ExitCode != 137 {
		t.Errorf("exit is %+v", c)
	}
	// The pod's own limit kills inside the container too.
	h.sandbox("pod2", func(s *SandboxSpec) { s.QOS, s.Resources.MemoryBytes = Burstable, 32<<20 })
	if _, c := h.output("pod2", "exec sh -c '"+eat+"'"); c.Reason != ReasonOOMKilled || c.ExitCode != 137 {
		t.Errorf("exit under the pod's limit is %+v", c)
	}
}

func TestProcessAndCPULimits(t *testing.T) {
	h := newHost(t)
	h.sandbox("pod1")
	out, _ := h.output("pod1", "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.2 & done; wait", func(s *ContainerSpec) { s.Resources.PidsLimit = 5 })
	if !strings.Contains(out, "can't fork") {
		t.Errorf("over the process limit it said %q", out)
	}
	c := h.start("pod1", "while :; do :; done", func(s *ContainerSpec) {
		s.Resources = Resources{CPUQuota: 20000, CPUPeriod: 100000, CPUShares: 512, MemoryBytes: 64 << 20}
	})
	first := h.stats(c.ID)
	time.Sleep(time.Second)
	second := h.stats(c.ID)
	used := float64(second.CPUNanos-first.CPUNanos) / float64(second.Time.Sub(first.Time))
	if used > 0.35 || used <= 0 {
		t.Errorf("used %.2f cores of 0.2", used)
	}
	if second.MemoryLimit != 64<<20 || second.MemoryBytes == 0 || second.Pids == 0 {
		t.Errorf("counters are %+v", second)
	}
	if p, err := h.PodStats(h.ctx(), "pod1"); err != nil || p.CPUNanos < second.CPUNanos {
		t.Errorf("the pod's counters are %+v, %v", p, err)
	}
}

func (h *host) stats(id string) Stats {
	h.t.Helper()
	s, err := h.Stats(h.ctx(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

func TestForkBombIsKilled(t *testing.T) {
	h := newHost(t)
	h.sandbox("pod1")
	c := h.start("pod1", "f() { f & f; sleep 1000; }; f", func(s *ContainerSpec) { s.Resources.PidsLimit = 200 })
	time.Sleep(100 * time.Millisecond)
	if err := h.Kill(h.ctx(), c.ID); err != nil {
		t.Fatal(err)
	}
	h.wait(c.ID)
}

// A log that nobody reads hangs the helper in open, as a stuck file system would.
func TestHungHelperIsKilledAtItsDeadline(t *testing.T) {
	h := newHost(t, func(c *Config) { c.StartDeadline = 500 * time.Millisecond })
	before, err := hostimage.Take()
	if err != nil {
		t.Fatal(err)
	}
	h.sandbox("pod1")
	fifo := filepath.Join(h.dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, err = h.StartContainer(h.ctx(), h.spec("pod1", "true", func(s *ContainerSpec) { s.LogPath = fifo }))
	mustBe(t, err, ErrDeadline)
	mustBe(t, err, ErrStart)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
	h.Engine.cfg.StartDeadline = testDeadline
	h.want("pod1", "echo fine", "fine")
	if err := h.RemoveSandbox(h.ctx(), "pod1"); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, before, h.dir, h.cfg.CgroupRoot)
}

func TestFrozenContainerIsKilled(t *testing.T) {
	h := newHost(t)
	h.sandbox("pod1")
	c := h.start("pod1", "sleep 1000")
	freeze(t, c.CgroupPath)
	if err := h.Kill(h.ctx(), c.ID); err != nil {
		t.Fatal(err)
	}
	if got := h.wait(c.ID); got.ExitCode != 137 {
		t.Errorf("exit is %+v", got)
	}
}

func freeze(t *testing.T, path string) {
	t.Helper()
	v1 := os.WriteFile(filepath.Join("/sys/fs/cgroup/freezer", path, "freezer.state"), []byte("FROZEN"), 0)
	v2 := os.WriteFile(filepath.Join("/sys/fs/cgroup", path, "cgroup.freeze"), []byte("1"), 0)
	if v1 != nil && v2 != nil {
		t.Fatal(v1, v2)
	}
}

func TestHundredAtOnce(t *testing.T) {
	h := newHost(t)
	before, err := hostimage.Take()
	if err != nil {
		t.Fatal(err)
	}
	count := 100
	if testing.Short() {
		count = 16
	}
	errs := make([]error, count)
	var all sync.WaitGroup
	for i := range count {
		all.Go(func() { errs[i] = h.cycle(fmt.Sprintf("pod%d", i)) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	nothingLeft(t, before, h.dir, h.cfg.CgroupRoot)
}

// cycle makes, runs and removes one pod.
func (h *host) cycle(pod string) error {
	ctx, cancel := context.WithTimeout(context.Background(), testDeadline)
	defer cancel()
	if _, err := h.CreateSandbox(ctx, SandboxSpec{PodUID: pod, Hostname: pod}); err != nil {
		return err
	}
	c, err := h.StartContainer(ctx, h.spec(pod, "echo hi; sleep 1000"))
	if err != nil {
		return err
	}
	if err := h.Kill(ctx, c.ID); err != nil {
		return err
	}
	return h.RemoveSandbox(ctx, pod)
}

func TestCyclesLeaveNothing(t *testing.T) {
	h := newHost(t)
	before, err := hostimage.Take()
	if err != nil {
		t.Fatal(err)
	}
	fds := openFiles(t)
	cycles := 20
	if testing.Short() {
		cycles = 6
	}
	for i := range cycles {
		if err := h.cycle(fmt.Sprintf("pod%d", i%4)); err != nil {
			t.Fatal(err)
		}
	}
	nothingLeft(t, before, h.dir, h.cfg.CgroupRoot)
	if now := openFiles(t); now > fds+3 {
		t.Errorf("open files grew from %d to %d", fds, now)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
