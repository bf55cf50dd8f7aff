package helper

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/kubelet/runtime/wire"
)

// deviceNodes are the nodes to make and the access rules: nothing but the usual ones, which libcontainer adds, and what
// the spec names; everything for a privileged container.
func deviceNodes(spec *wire.ContainerSpec) ([]specs.LinuxDevice, []specs.LinuxDeviceCgroup, error) {
	if spec.Privileged {
		return hostDevices(), []specs.LinuxDeviceCgroup{{Allow: true, Access: "rwm"}}, nil
	}
	rules := []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}}
	var nodes []specs.LinuxDevice
	for _, d := range spec.Devices {
		node, err := deviceNode(d.HostPath, d.ContainerPath)
		if err != nil {
			return nil, nil, err
		}
		nodes = append(nodes, node)
		rules = append(rules, specs.LinuxDeviceCgroup{Allow: true, Type: node.Type, Major: &node.Major, Minor: &node.Minor, Access: d.Permissions})
	}
	return nodes, rules, nil
}

func deviceNode(host, inside string) (specs.LinuxDevice, error) {
	var st unix.Stat_t
	if err := unix.Lstat(host, &st); err != nil {
		return specs.LinuxDevice{}, fmt.Errorf("cannot use device %s: %w", host, err)
	}
	kind := map[uint32]string{unix.S_IFCHR: "c", unix.S_IFBLK: "b"}[st.Mode&unix.S_IFMT]
	if kind == "" {
		return specs.LinuxDevice{}, fmt.Errorf("cannot use device %s: not a device", host)
	}
	mode := fs.FileMode(st.Mode & 0o777)
	return specs.LinuxDevice{
		Path: inside, Type: kind, Major: int64(unix.Major(st.Rdev)), Minor: int64(unix.Minor(st.Rdev)),
		FileMode: &mode, UID: &st.Uid, GID: &st.Gid,
	}, nil
}

// ownDev are the parts of /dev every container has of its own.
var ownDev = []string{"/dev/pts", "/dev/shm", "/dev/mqueue", "/dev/fd", "/dev/console", "/dev/ptmx"}

func hostDevices() []specs.LinuxDevice {
	var out []specs.LinuxDevice
	_ = filepath.WalkDir("/dev", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // a device that went away meanwhile is not offered
		}
		if slices.Contains(ownDev, path) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.Type()&fs.ModeDevice != 0 {
			if node, err := deviceNode(path, path); err == nil {
				out = append(out, node)
			}
		}
		return nil
	})
	return out
}
