package wire

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

const defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Environment is the container's environment with what every container may rely on added.
func Environment(c *ContainerSpec, s *SandboxSpec) []string {
	env := slices.Clone(c.Env)
	has := func(name string) bool {
		return slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
	}
	if !has("PATH") {
		env = append(env, defaultPath)
	}
	if !has("HOSTNAME") && s.Hostname != "" {
		env = append(env, "HOSTNAME="+s.Hostname)
	}
	if !has("TERM") && c.Tty {
		env = append(env, "TERM=xterm")
	}
	return env
}

// BootID names the running kernel's boot; it is empty when it cannot be read.
func BootID() string {
	raw, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(raw))
}

// StartTicks is when a process started, in clock ticks since boot.
func StartTicks(pid int) (uint64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The command name before the last parenthesis may contain anything; of what follows, this is the 20th field.
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	if len(fields) < 20 {
		return 0, fmt.Errorf("cannot parse /proc/%d/stat", pid)
	}
	return strconv.ParseUint(fields[19], 10, 64)
}
