package podspec

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	subPathsDir = "volume-subpaths"
	subPathMode = 0o750
)

// subPath binds sub below volume to a place of its own and returns that place. What the container sees can then not be
// moved by a symbolic link that someone swaps in later; a link that leads out of the volume is refused.
func subPath(podDir, volumeName, container string, index int, volume, sub string) (string, error) {
	if filepath.IsAbs(sub) || !filepath.IsLocal(sub) {
		return "", &ConfigError{fmt.Errorf("cannot mount subPath %q: it must be relative and stay inside the volume", sub)}
	}
	fd, dir, err := openSubPath(volume, sub)
	if err != nil {
		return "", &ConfigError{fmt.Errorf("cannot prepare subPath %q of volume %q: %w", sub, volumeName, err)}
	}
	defer unix.Close(fd)
	target := filepath.Join(podDir, subPathsDir, volumeName, container, strconv.Itoa(index))
	if err := mountPoint(target, dir); err != nil {
		return "", err
	}
	source := "/proc/self/fd/" + strconv.Itoa(fd)
	if err := unix.Mount(source, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return "", fmt.Errorf("cannot bind subPath %q of volume %q: %w", sub, volumeName, err)
	}
	return target, nil
}

// openSubPath opens sub below volume without leaving it, after making what is missing as directories.
func openSubPath(volume, sub string) (fd int, dir bool, err error) {
	root, err := os.OpenRoot(volume)
	if err != nil {
		return -1, false, err
	}
	defer root.Close()
	if _, err := root.Stat(sub); errors.Is(err, fs.ErrNotExist) {
		if err := makeAll(root, sub); err != nil {
			return -1, false, err
		}
	} else if err != nil {
		return -1, false, err
	}
	base, err := unix.Open(volume, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, false, err
	}
	defer unix.Close(base)
	fd, err = unix.Openat2(base, sub, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return -1, false, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return -1, false, err
	}
	return fd, st.Mode&unix.S_IFMT == unix.S_IFDIR, nil
}

// makeAll makes what is missing of sub with the mode of the volume itself, so that who may write there may write here.
func makeAll(root *os.Root, sub string) error {
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	p := ""
	for part := range strings.SplitSeq(filepath.Clean(sub), "/") {
		p = filepath.Join(p, part)
		switch err := root.Mkdir(p, subPathMode); {
		case errors.Is(err, fs.ErrExist):
		case err != nil:
			return err
		default:
			if err := root.Chmod(p, info.Mode()&(fs.ModePerm|fs.ModeSetgid)); err != nil {
				return err
			}
		}
	}
	return nil
}

// mountPoint makes an empty directory or file, and takes off what an earlier run left mounted there.
func mountPoint(target string, dir bool) error {
	for unix.Unmount(target, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH) == nil {
	}
	if info, err := os.Lstat(target); err == nil && info.IsDir() != dir {
		if err := os.Remove(target); err != nil {
			return err
		}
	}
	if dir {
		return os.MkdirAll(target, subPathMode)
	}
	if err := os.MkdirAll(filepath.Dir(target), subPathMode); err != nil {
		return err
	}
	f, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	return f.Close()
}
