package helper

import (
	"path/filepath"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/nodeactor/nodeactor/kubelet/runtime/wire"
)

// maskedPaths and readonlyPaths hide what of /proc and /sys tells of, or reaches, the host.
var (
	maskedPaths = []string{
		"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
		"/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap",
	}
	readonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

// ociSpec says the request in the words of the OCI runtime specification, without what belongs to the process.
func ociSpec(r *wire.StartRequest) (*specs.Spec, error) {
	devices, rules, err := deviceNodes(&r.Spec)
	if err != nil {
		return nil, err
	}
	resources := ociResources(r.Spec.Resources)
	resources.Devices = rules
	score := clampOOMScore(r.Spec.Resources.OOMScoreAdj)
	spec := &specs.Spec{
		Version: specs.Version,
		Root:    &specs.Root{Path: r.Layout.Rootfs(r.Spec.ID), Readonly: r.Spec.ReadOnlyRootfs},
		Mounts:  ociMounts(r),
		Process: &specs.Process{
			NoNewPrivileges: r.Spec.NoNewPrivs,
			OOMScoreAdj:     &score,
			Capabilities:    capabilitySet(&r.Spec),
			User:            specs.User{UID: uint32(r.Spec.UID), GID: uint32(r.Spec.GID)},
		},
		Linux: &specs.Linux{
			CgroupsPath:       r.Cgroup,
			Namespaces:        namespaces(r),
			Resources:         resources,
			Devices:           devices,
			RootfsPropagation: rootPropagation(r.Spec.Mounts),
		},
	}
	if !r.Spec.Privileged && !r.Spec.UnmaskProc {
		spec.Linux.MaskedPaths, spec.Linux.ReadonlyPaths = maskedPaths, readonlyPaths
	}
	return spec, nil
}

// namespaces joins the sandbox's pinned ones; one the pod shares with the host is left out.
func namespaces(r *wire.StartRequest) []specs.LinuxNamespace {
	out := []specs.LinuxNamespace{{Type: specs.MountNamespace}}
	add := func(kind specs.LinuxNamespaceType, host bool, path string) {
		if !host {
			out = append(out, specs.LinuxNamespace{Type: kind, Path: path})
		}
	}
	uid := r.Sandbox.PodUID
	add(specs.NetworkNamespace, r.Sandbox.HostNetwork, r.Layout.Namespace(uid, "net"))
	add(specs.UTSNamespace, r.Sandbox.HostNetwork, r.Layout.Namespace(uid, "uts"))
	add(specs.IPCNamespace, r.Sandbox.HostIPC, r.Layout.Namespace(uid, "ipc"))
	add(specs.PIDNamespace, r.Sandbox.HostPID, procNamespace(r.PausePID, "pid"))
	add(specs.CgroupNamespace, r.Spec.Privileged, "")
	return out
}

// ociMounts are the usual ones, unless the pod mounts something of its own there, then the pod's, parents first.
func ociMounts(r *wire.StartRequest) []specs.Mount {
	var own []specs.Mount
	for _, m := range r.Spec.Mounts {
		own = append(own, ociMount(m))
	}
	slices.SortStableFunc(own, func(a, b specs.Mount) int { return depth(a.Destination) - depth(b.Destination) })
	usual := slices.DeleteFunc(usualMounts(r), func(m specs.Mount) bool {
		return slices.ContainsFunc(own, func(o specs.Mount) bool { return filepath.Clean(o.Destination) == m.Destination })
	})
	return append(usual, own...)
}

func depth(path string) int {
	n := 0
	for _, c := range filepath.Clean(path) {
		if c == '/' {
			n++
		}
	}
	return n
}

func usualMounts(r *wire.StartRequest) []specs.Mount {
	mode := "ro"
	if r.Spec.Privileged {
		mode = "rw"
	}
	sys := specs.Mount{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "noexec", "nodev", mode}}
	if r.Sandbox.HostNetwork { // a new sysfs would need a network namespace of the container's own
		sys = specs.Mount{Destination: "/sys", Type: "bind", Source: "/sys", Options: []string{"rbind", "nosuid", "noexec", "nodev", "rslave", mode}}
	}
	shm := r.Layout.Shm(r.Sandbox.PodUID)
	if r.Sandbox.HostIPC {
		shm = "/dev/shm"
	}
	mounts := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "strictatime", "mode=755", "size=65536k"}},
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}},
		{Destination: "/dev/mqueue", Type: "mqueue", Source: "mqueue", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/dev/shm", Type: "bind", Source: shm, Options: []string{"bind", "nosuid", "noexec", "nodev"}},
		sys,
	}
	if !r.Sandbox.HostNetwork {
		mounts = append(mounts, specs.Mount{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: []string{"nosuid", "noexec", "nodev", "relatime", mode}})
	}
	return mounts
}
