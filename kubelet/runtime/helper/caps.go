package helper

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/runc/libcontainer/capabilities"
	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/nodeactor/nodeactor/kubelet/runtime/wire"
)

// defaultCaps is what Docker and containerd give every container.
var defaultCaps = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_MKNOD", "CAP_NET_RAW", "CAP_SETGID", "CAP_SETUID",
	"CAP_SETFCAP", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_KILL", "CAP_AUDIT_WRITE",
}

// capabilitySet is what the container gets: adds before drops, and "ALL" first in either list. Nothing outside our own bounding set
// can be given, so it is left out rather than failing the start.
func capabilitySet(spec *wire.ContainerSpec) *specs.LinuxCapabilities {
	own := boundingSet()
	set := slices.Clone(defaultCaps)
	if spec.Privileged {
		set = slices.Clone(own)
	}
	add, drop := capNames(spec.CapAdd), capNames(spec.CapDrop)
	if slices.Contains(add, "CAP_ALL") {
		set = slices.Clone(own)
	}
	if slices.Contains(drop, "CAP_ALL") {
		set = nil
	}
	for _, c := range add {
		if c != "CAP_ALL" && !slices.Contains(set, c) {
			set = append(set, c)
		}
	}
	set = slices.DeleteFunc(set, func(c string) bool { return slices.Contains(drop, c) || !slices.Contains(own, c) })
	return &specs.LinuxCapabilities{Bounding: set, Effective: set, Permitted: set}
}

func capNames(in []string) []string {
	var out []string
	for _, c := range in {
		c = strings.ToUpper(c)
		if !strings.HasPrefix(c, "CAP_") {
			c = "CAP_" + c
		}
		out = append(out, c)
	}
	return out
}

// boundingSet is what this process may hand on, in the kernel's order.
func boundingSet() []string {
	bits := statusBits("CapBnd:")
	var out []string
	for i, name := range capsByNumber {
		if bits&(1<<i) != 0 && slices.Contains(capabilities.KnownCapabilities(), name) {
			out = append(out, name)
		}
	}
	return out
}

func statusBits(field string) uint64 {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, field); ok {
			bits, _ := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			return bits
		}
	}
	return 0
}

// capsByNumber are the kernel's names in the order of their bits.
var capsByNumber = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID", "CAP_SETUID",
	"CAP_SETPCAP", "CAP_LINUX_IMMUTABLE", "CAP_NET_BIND_SERVICE", "CAP_NET_BROADCAST", "CAP_NET_ADMIN", "CAP_NET_RAW",
	"CAP_IPC_LOCK", "CAP_IPC_OWNER", "CAP_SYS_MODULE", "CAP_SYS_RAWIO", "CAP_SYS_CHROOT", "CAP_SYS_PTRACE", "CAP_SYS_PACCT",
	"CAP_SYS_ADMIN", "CAP_SYS_BOOT", "CAP_SYS_NICE", "CAP_SYS_RESOURCE", "CAP_SYS_TIME", "CAP_SYS_TTY_CONFIG", "CAP_MKNOD",
	"CAP_LEASE", "CAP_AUDIT_WRITE", "CAP_AUDIT_CONTROL", "CAP_SETFCAP", "CAP_MAC_OVERRIDE", "CAP_MAC_ADMIN", "CAP_SYSLOG",
	"CAP_WAKE_ALARM", "CAP_BLOCK_SUSPEND", "CAP_AUDIT_READ", "CAP_PERFMON", "CAP_BPF", "CAP_CHECKPOINT_RESTORE",
}
