package node

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// ErrPreflight is returned when this host cannot run a node; the message names what
// is missing and the remedy.
var ErrPreflight = errors.New("this host cannot run a node")

// Preflight proves, before anything is changed, that the process may do what a node
// does: it is root, the kernel has the file systems and namespaces, cgroups are there.
func Preflight() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: it runs as uid %d, but mounting, namespaces and cgroups need root; use sudo", ErrPreflight, os.Geteuid())
	}
	for _, check := range []func() error{hasOverlay, hasNamespaces, hasCgroups} {
		if err := check(); err != nil {
			return fmt.Errorf("%w: %w", ErrPreflight, err)
		}
	}
	return nil
}

func hasOverlay() error {
	b, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return fmt.Errorf("cannot read /proc/filesystems: %w; mount /proc", cause(err))
	}
	if slices.ContainsFunc(bytes.Split(b, []byte("\n")), func(l []byte) bool { return bytes.HasSuffix(l, []byte("\toverlay")) }) {
		return nil
	}
	// A module that is not loaded yet is not listed; the mount attempt loads it. It is
	// made without options, so it can only fail: how it fails tells whether it exists.
	if err := unix.Mount("overlay", "/", "overlay", unix.MS_RDONLY, ""); errors.Is(err, unix.ENODEV) {
		return errors.New("the kernel has no overlayfs (CONFIG_OVERLAY_FS); images need it: load the module or boot a kernel that has it")
	}
	return nil
}

func hasNamespaces() error {
	for _, ns := range []string{"mnt", "net", "uts", "ipc", "pid"} {
		if _, err := os.Stat("/proc/self/ns/" + ns); err != nil {
			return fmt.Errorf("the kernel has no %s namespaces; boot a kernel that has them", ns)
		}
	}
	return nil
}

func hasCgroups() error {
	for _, p := range []string{"/sys/fs/cgroup/cgroup.controllers", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/devices"} {
		if _, err := os.Stat(p); err == nil {
			return nil
		}
	}
	return errors.New("no cgroup hierarchy is mounted at /sys/fs/cgroup; mount cgroup2 there (mount -t cgroup2 none /sys/fs/cgroup)")
}
