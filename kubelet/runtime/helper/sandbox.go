package helper

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/kubelet/runtime/wire"
)

// shmOptions are those of every pod's /dev/shm.
const shmOptions = "mode=1777,size=67108864"

// createSandbox makes the pod's cgroup and namespaces, and marks the sandbox ready when all is there.
func createSandbox(c *call) error {
	var r wire.SandboxRequest
	if err := c.decode(&r); err != nil {
		return err
	}
	for _, dir := range []string{r.Layout.Shm(r.Spec.PodUID), filepath.Dir(r.Layout.Namespace(r.Spec.PodUID, "net"))} {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return err
		}
	}
	if err := createPodCgroup(&r); err != nil {
		return fmt.Errorf("cannot create the pod's cgroup: %w", err)
	}
	if err := unix.Mount("shm", r.Layout.Shm(r.Spec.PodUID), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, shmOptions); err != nil {
		return fmt.Errorf("cannot mount the pod's /dev/shm: %w", err)
	}
	if err := pinNamespaces(&r); err != nil {
		return err
	}
	if err := os.WriteFile(r.Layout.Ready(r.Spec.PodUID), []byte(wire.BootID()), 0o600); err != nil {
		return err
	}
	return c.answer(wire.Reply{})
}

func createPodCgroup(r *wire.SandboxRequest) error {
	return withCgroupLock(r.Layout.CgroupLock(), unix.LOCK_SH, func() error {
		limits := cgroupResources(r.Spec.Resources)
		m, err := cgroupManager(r.Cgroup, limits)
		if err != nil {
			return err
		}
		if err := m.Apply(-1); err != nil {
			return err
		}
		if r.Spec.QOS == wire.BestEffort || r.Spec.QOS == "" {
			if err := setLeastShares(filepath.Dir(r.Cgroup)); err != nil {
				return err
			}
		}
		return m.Set(limits)
	})
}

// setLeastShares gives the BestEffort class the smallest weight there is.
func setLeastShares(path string) error {
	least := cgroupResources(wire.Resources{CPUShares: 2})
	m, err := cgroupManager(path, least)
	if err != nil {
		return err
	}
	return m.Set(least)
}

// pinNamespaces makes the namespaces on a thread of its own and binds them to files. The thread is never unlocked:
// it would carry the namespaces back into the pool.
func pinNamespaces(r *wire.SandboxRequest) error {
	kinds := sandboxNamespaces(&r.Spec)
	if len(kinds) == 0 {
		return nil
	}
	runtime.LockOSThread()
	flags := 0
	for _, flag := range kinds {
		flags |= flag
	}
	if err := unix.Unshare(flags); err != nil {
		return fmt.Errorf("cannot make the pod's namespaces: %w", err)
	}
	if err := setUpNamespaces(&r.Spec); err != nil {
		return err
	}
	for kind := range kinds {
		if err := pin(fmt.Sprintf("/proc/self/task/%d/ns/%s", unix.Gettid(), kind), r.Layout.Namespace(r.Spec.PodUID, kind)); err != nil {
			return fmt.Errorf("cannot pin the pod's %s namespace: %w", kind, err)
		}
	}
	return nil
}

func sandboxNamespaces(s *wire.SandboxSpec) map[string]int {
	kinds := map[string]int{}
	if !s.HostNetwork {
		kinds["net"], kinds["uts"] = unix.CLONE_NEWNET, unix.CLONE_NEWUTS
	}
	if !s.HostIPC {
		kinds["ipc"] = unix.CLONE_NEWIPC
	}
	return kinds
}

func pin(from, to string) error {
	f, err := os.OpenFile(to, os.O_RDONLY|os.O_CREATE|os.O_EXCL, 0o400)
	if err != nil {
		return err
	}
	f.Close()
	return unix.Mount(from, to, "", unix.MS_BIND, "")
}

// setUpNamespaces runs inside: /proc/sys shows the namespaces of the thread that writes.
func setUpNamespaces(s *wire.SandboxSpec) error {
	if !s.HostNetwork {
		if err := loopbackUp(); err != nil {
			return fmt.Errorf("cannot bring up the pod's loopback: %w", err)
		}
		if s.Hostname != "" {
			if err := unix.Sethostname([]byte(s.Hostname)); err != nil {
				return fmt.Errorf("cannot set the pod's hostname: %w", err)
			}
		}
		// Every process of a pod may use any port of the pod's own address.
		if err := writeSysctl("net.ipv4.ip_unprivileged_port_start", "0"); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	for name, value := range s.Sysctls {
		if err := checkSysctl(s, name); err != nil {
			return err
		}
		if err := writeSysctl(name, value); err != nil {
			return err
		}
	}
	return nil
}

// checkSysctl refuses what would change the host.
func checkSysctl(s *wire.SandboxSpec, name string) error {
	ipc := strings.HasPrefix(name, "kernel.shm") || strings.HasPrefix(name, "kernel.msg") || name == "kernel.sem" || strings.HasPrefix(name, "fs.mqueue.")
	switch {
	case strings.HasPrefix(name, "net.") && !s.HostNetwork, ipc && !s.HostIPC:
		return nil
	case strings.HasPrefix(name, "net."), ipc:
		return fmt.Errorf("cannot set sysctl %s: the pod shares that namespace with the host", name)
	}
	return fmt.Errorf("cannot set sysctl %s: it is not namespaced", name)
}

func writeSysctl(name, value string) error {
	path := filepath.Join("/proc/sys", filepath.Clean("/"+strings.ReplaceAll(name, ".", "/")))
	if err := os.WriteFile(path, []byte(value), 0); err != nil {
		return fmt.Errorf("cannot set sysctl %s: %w", name, err)
	}
	return nil
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}
