package helper

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// unmountBelow unmounts everything mounted on dir or below it, the last mounted first.
func unmountBelow(dir string) error {
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if err != nil {
		return fmt.Errorf("cannot list mounts below %s: %w", dir, err)
	}
	var failed error
	for _, m := range slices.Backward(mounts) {
		failed = errors.Join(failed, unmount(m.Mountpoint))
	}
	return failed
}

// unmount detaches: what still uses the mount keeps it until it lets go, and the path is free at once.
func unmount(path string) error {
	err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	if err == nil || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return fmt.Errorf("cannot unmount %s: %w", path, err)
}

// removeTree unmounts and removes dir. It refuses to remove through a mount that could not be undone.
func removeTree(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := unmountBelow(dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
