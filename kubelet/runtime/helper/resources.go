package helper

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"
	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/nodeactor/nodeactor/kubelet/runtime/wire"
)

// ociResources are the limits of a container, for either cgroup version.
func ociResources(r wire.Resources) *specs.LinuxResources {
	out := &specs.LinuxResources{CPU: &specs.LinuxCPU{Cpus: r.CPUSet}, Memory: &specs.LinuxMemory{}}
	if r.CPUShares > 0 {
		out.CPU.Shares = &r.CPUShares
	}
	if r.CPUQuota > 0 {
		out.CPU.Quota = &r.CPUQuota
	}
	if r.CPUPeriod > 0 {
		out.CPU.Period = &r.CPUPeriod
	}
	if r.PidsLimit > 0 {
		out.Pids = &specs.LinuxPids{Limit: &r.PidsLimit}
	}
	if r.MemoryBytes > 0 {
		out.Memory.Limit = &r.MemoryBytes
		if swapLimited() {
			out.Memory.Swap = &r.MemoryBytes
		}
		if cgroups.IsCgroup2UnifiedMode() { // a container with half its processes killed is worse than one that ended
			out.Unified = map[string]string{"memory.oom.group": "1"}
		}
	}
	return out
}

// cgroupResources are the limits of a pod's or class's own group.
func cgroupResources(r wire.Resources) *cgroups.Resources {
	out := &cgroups.Resources{
		SkipDevices: true, CpuShares: r.CPUShares, CpuQuota: r.CPUQuota, CpuPeriod: r.CPUPeriod, Memory: r.MemoryBytes, CpusetCpus: r.CPUSet,
	}
	if r.PidsLimit > 0 {
		out.PidsLimit = &r.PidsLimit
	}
	if r.MemoryBytes > 0 && swapLimited() {
		out.MemorySwap = r.MemoryBytes
	}
	if cgroups.IsCgroup2UnifiedMode() && r.CPUShares > 0 {
		out.CpuWeight = cgroups.ConvertCPUSharesToCgroupV2Value(r.CPUShares)
	}
	return out
}

// swapLimited says whether this kernel accounts swap; without, setting a swap limit fails.
func swapLimited() bool {
	if !cgroups.IsCgroup2UnifiedMode() {
		_, err := os.Stat("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes")
		return err == nil
	}
	raw, err := os.ReadFile("/proc/swaps")
	return err == nil && strings.Count(string(raw), "\n") > 1
}

// cgroupManager is the manager of the group at path, below every hierarchy.
func cgroupManager(path string, r *cgroups.Resources) (cgroups.Manager, error) {
	return manager.New(&cgroups.Cgroup{Path: filepath.Clean(path), Resources: r})
}

// hierarchies are the directories of the group at path, whether it exists or not.
func hierarchies(path string) ([]string, error) {
	m, err := cgroupManager(path, &cgroups.Resources{SkipDevices: true})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, dir := range m.GetPaths() {
		out = append(out, dir)
	}
	return out, nil
}
