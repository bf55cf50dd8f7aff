package volumes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

const (
	emptyDirMode = 0o777
	newFileMode  = 0o644
)

// emptyDir makes a directory, in memory if asked for.
func (m *Manager) emptyDir(pod *v1.Pod, v *v1.Volume) (string, error) {
	dir := m.dir(pod, v, "empty-dir")
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return "", err
	}
	switch v.EmptyDir.Medium {
	case v1.StorageMediumDefault:
	case v1.StorageMediumMemory:
		if !isMountPoint(dir) {
			if err := unix.Mount("tmpfs", dir, "tmpfs", 0, tmpfsOptions(pod, v.EmptyDir)); err != nil {
				return "", fmt.Errorf("cannot mount tmpfs: %w", err)
			}
		}
	default:
		return "", fmt.Errorf("emptyDir of medium %s is not supported on this node", v.EmptyDir.Medium)
	}
	mode := fs.FileMode(emptyDirMode)
	gid := fsGroup(pod)
	if gid >= 0 {
		if err := os.Chown(dir, 0, gid); err != nil {
			return "", err
		}
		mode |= fs.ModeSetgid
	}
	return dir, os.Chmod(dir, mode)
}

// tmpfsOptions bounds the volume by its own limit and by the pod's memory.
func tmpfsOptions(pod *v1.Pod, e *v1.EmptyDirVolumeSource) string {
	size := int64(0)
	if e.SizeLimit != nil {
		size = e.SizeLimit.Value()
	}
	memory, limited := int64(0), true
	for i := range pod.Spec.Containers {
		q := pod.Spec.Containers[i].Resources.Limits[v1.ResourceMemory]
		limited = limited && !q.IsZero()
		memory += q.Value()
	}
	if limited && memory > 0 && (size == 0 || memory < size) {
		size = memory
	}
	if size <= 0 {
		return "mode=0777"
	}
	return fmt.Sprintf("mode=0777,size=%d", size)
}

// hostPath checks the path against its declared type and makes it when the type says so.
func hostPath(h *v1.HostPathVolumeSource) error {
	if !filepath.IsAbs(h.Path) {
		return fmt.Errorf("cannot use host path %q: not absolute", h.Path)
	}
	want := v1.HostPathUnset
	if h.Type != nil {
		want = *h.Type
	}
	info, err := os.Stat(h.Path)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return err
	}
	switch want {
	case v1.HostPathUnset:
		if missing {
			return os.MkdirAll(h.Path, dirMode)
		}
		return nil
	case v1.HostPathDirectoryOrCreate:
		if missing {
			return os.MkdirAll(h.Path, dirMode)
		}
	case v1.HostPathFileOrCreate:
		if missing {
			return os.WriteFile(h.Path, nil, newFileMode)
		}
	}
	if missing || !isType(info.Mode(), want) {
		return fmt.Errorf("hostPath type check failed: %s is not a %s", h.Path, typeName(want))
	}
	return nil
}

func isType(m fs.FileMode, t v1.HostPathType) bool {
	switch t {
	case v1.HostPathDirectory, v1.HostPathDirectoryOrCreate:
		return m.IsDir()
	case v1.HostPathFile, v1.HostPathFileOrCreate:
		return m.IsRegular()
	case v1.HostPathSocket:
		return m&fs.ModeSocket != 0
	case v1.HostPathCharDev:
		return m&fs.ModeCharDevice != 0
	case v1.HostPathBlockDev:
		return m&fs.ModeDevice != 0 && m&fs.ModeCharDevice == 0
	}
	return false
}

func typeName(t v1.HostPathType) string {
	return map[v1.HostPathType]string{v1.HostPathDirectory: "directory", v1.HostPathDirectoryOrCreate: "directory",
		v1.HostPathFile: "file", v1.HostPathFileOrCreate: "file", v1.HostPathSocket: "socket file",
		v1.HostPathCharDev: "character device", v1.HostPathBlockDev: "block device"}[t]
}

// kind is the field of the volume's source that is set, as manifests write it.
func kind(v *v1.Volume) string {
	s := reflect.ValueOf(v.VolumeSource)
	for i := range s.NumField() {
		if !s.Field(i).IsNil() {
			name, _, _ := strings.Cut(s.Type().Field(i).Tag.Get("json"), ",")
			return name
		}
	}
	return "unknown"
}
