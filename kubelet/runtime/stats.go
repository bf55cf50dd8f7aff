package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Stats implements Runtime.
func (e *Engine) Stats(_ context.Context, id string) (Stats, error) {
	c, running, err := e.lookup(id)
	if err != nil {
		return Stats{}, fmt.Errorf("cannot read counters: %w", err)
	}
	if !running {
		return Stats{}, fmt.Errorf("cannot read counters of container %s: %w", id, ErrNotRunning)
	}
	return e.stats(c.record.Cgroup)
}

// PodStats implements Runtime.
func (e *Engine) PodStats(_ context.Context, podUID string) (Stats, error) {
	p := e.pod(podUID)
	if p == nil {
		return Stats{}, fmt.Errorf("cannot read counters of sandbox %s: %w", podUID, ErrNotFound)
	}
	return e.stats(p.record.Cgroup)
}

func (e *Engine) stats(cgroup string) (Stats, error) {
	c, err := e.cgroup.Read(cgroup)
	if errors.Is(err, os.ErrNotExist) {
		err = ErrNotFound
	}
	if err != nil {
		return Stats{}, fmt.Errorf("cannot read counters of cgroup %s: %w", cgroup, err)
	}
	return Stats{
		Time: e.cfg.Clock.Now(), CPUNanos: c.CPUNanos, MemoryBytes: c.Memory, WorkingSetBytes: c.WorkingSet, RSSBytes: c.RSS,
		MemoryLimit: c.MemoryLimit, Pids: c.Pids, PageFaults: c.PageFaults, MajorPageFaults: c.MajorPageFaults, OOMKills: c.OOMKills,
	}, nil
}
