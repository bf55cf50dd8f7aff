// Package cgroupfs reads counters of cgroups directly from their files, on either version: a tenth of the cost of asking
// libcontainer, and without linking it.
package cgroupfs

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mountPoint is where the hierarchies are.
const mountPoint = "/sys/fs/cgroup"

// noLimit is where version 1 starts to mean "none": the largest page-aligned int64 is written for it.
const noLimit = 1 << 60

// Host is how this host has its cgroups mounted. It does not change and is safe for concurrent use.
type Host struct {
	version int
	// dirs are the mount points of version 1 by controller.
	dirs map[string]string
}

// Counters of one group.
type Counters struct {
	CPUNanos                    uint64
	Memory, WorkingSet, RSS     uint64
	MemoryLimit                 uint64 // 0 = none
	Pids                        uint64
	PageFaults, MajorPageFaults uint64
	OOMKills                    uint64
}

// Find looks at the host.
func Find() (*Host, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(mountPoint, &st); err != nil {
		return nil, fmt.Errorf("cannot find cgroups at %s: %w", mountPoint, err)
	}
	if st.Type == unix.CGROUP2_SUPER_MAGIC {
		return &Host{version: 2}, nil
	}
	h := &Host{version: 1, dirs: map[string]string{}}
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		h.addMount(lines.Text())
	}
	if h.dirs["memory"] == "" {
		return nil, errors.New("cannot find cgroups: the memory controller is not mounted")
	}
	return h, nil
}

// addMount takes one line of mountinfo; those of cgroup v1 name their controllers in the last field.
func (h *Host) addMount(line string) {
	fields := strings.Fields(line)
	sep := slices.Index(fields, "-")
	if sep < 0 || sep+3 >= len(fields) || fields[sep+1] != "cgroup" {
		return
	}
	for controller := range strings.SplitSeq(fields[sep+3], ",") {
		if h.dirs[controller] == "" {
			h.dirs[controller] = fields[4]
		}
	}
}

// Version is 1 or 2.
func (h *Host) Version() int { return h.version }

// Read reads the group at path. What a kernel does not count stays 0; the error matches os.ErrNotExist when the group
// does not exist.
func (h *Host) Read(path string) (Counters, error) {
	if h.version == 2 {
		return readV2(filepath.Join(mountPoint, path))
	}
	return h.readV1(path)
}

func readV2(dir string) (Counters, error) {
	var c Counters
	cpu, err := table(filepath.Join(dir, "cpu.stat"))
	if err != nil {
		return c, err
	}
	memory, _ := table(filepath.Join(dir, "memory.stat"))
	events, _ := table(filepath.Join(dir, "memory.events"))
	c.CPUNanos = cpu["usage_usec"] * 1000
	c.Memory = number(filepath.Join(dir, "memory.current"))
	c.MemoryLimit = number(filepath.Join(dir, "memory.max"))
	c.WorkingSet = less(c.Memory, memory["inactive_file"])
	c.RSS = memory["anon"]
	c.PageFaults, c.MajorPageFaults = memory["pgfault"], memory["pgmajfault"]
	c.Pids = number(filepath.Join(dir, "pids.current"))
	c.OOMKills = events["oom_kill"]
	return c, nil
}

func (h *Host) readV1(path string) (Counters, error) {
	var c Counters
	at := func(controller, file string) string { return filepath.Join(h.dirs[controller], path, file) }
	memory, err := table(at("memory", "memory.stat"))
	if err != nil {
		return c, err
	}
	oom, _ := table(at("memory", "memory.oom_control"))
	c.CPUNanos = number(at("cpuacct", "cpuacct.usage"))
	c.Memory = number(at("memory", "memory.usage_in_bytes"))
	if limit := number(at("memory", "memory.limit_in_bytes")); limit < noLimit {
		c.MemoryLimit = limit
	}
	c.WorkingSet = less(c.Memory, memory["total_inactive_file"])
	c.RSS = memory["total_rss"]
	c.PageFaults, c.MajorPageFaults = memory["total_pgfault"], memory["total_pgmajfault"]
	c.Pids = number(at("pids", "pids.current"))
	c.OOMKills = oom["oom_kill"]
	return c, nil
}

func less(a, b uint64) uint64 {
	if b > a {
		return 0
	}
	return a - b
}

// number is a file with one number; 0 for "max" or a missing file.
func number(path string) uint64 {
	raw, _ := os.ReadFile(path)
	n, _ := strconv.ParseUint(strings.TrimSpace(string(raw)), 10, 64)
	return n
}

// table is a file of lines "name number".
func table(path string) (map[string]uint64, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	out := map[string]uint64{}
	for line := range strings.Lines(string(raw)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			out[name], _ = strconv.ParseUint(value, 10, 64)
		}
	}
	return out, nil
}
