package helper

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/kubelet/runtime/wire"
)

// mountRootfs mounts the overlay of layers at the container's rootfs.
//
// The upper layer is volatile: after a crash of the host it is thrown away, so no unmount needs to sync it.
func mountRootfs(l wire.Layout, id string, layers []string) error {
	dir := l.Container(id)
	for _, sub := range []string{"upper", "work", "rootfs"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return err
		}
	}
	if len(layers) == 0 {
		return errors.New("cannot mount the root file system: no layers")
	}
	for _, layer := range layers {
		if _, err := os.Stat(layer); err != nil {
			return fmt.Errorf("cannot use image layer: %w", err)
		}
	}
	mount := mountOverlayOld
	if kernelAtLeast(6, 8) {
		mount = mountOverlayNew
	}
	if err := mount(dir, layers); err != nil {
		return fmt.Errorf("cannot mount the root file system: %w", err)
	}
	return nil
}

// kernelAtLeast says whether the running kernel is that new. Asking the file system itself would leave a complaint in the
// kernel's log at each start.
func kernelAtLeast(major, minor int) bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	var a, b int
	if n, _ := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &a, &b); n != 2 {
		return false
	}
	return a > major || a == major && b >= minor
}

// mountOverlayNew gives each layer in a call of its own (kernel 6.8 on), so that neither their number nor their length
// is bounded by a page.
func mountOverlayNew(dir string, layers []string) error {
	fs, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fs)
	for _, layer := range layers {
		if err := unix.FsconfigSetString(fs, "lowerdir+", layer); err != nil {
			return err
		}
	}
	for _, kv := range [][2]string{{"upperdir", filepath.Join(dir, "upper")}, {"workdir", filepath.Join(dir, "work")}} {
		if err := unix.FsconfigSetString(fs, kv[0], kv[1]); err != nil {
			return err
		}
	}
	if err := unix.FsconfigSetFlag(fs, "volatile"); err != nil {
		return err
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return err
	}
	m, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(m)
	return unix.MoveMount(m, "", unix.AT_FDCWD, filepath.Join(dir, "rootfs"), unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// mountOverlayOld serves older kernels. Their options end at 4096 bytes, so the layers get short names, relative to the
// working directory, and room for about a thousand of them.
func mountOverlayOld(dir string, layers []string) error {
	if err := os.MkdirAll(filepath.Join(dir, "l"), 0o700); err != nil {
		return err
	}
	var lower []string
	for i, layer := range layers {
		name := filepath.Join("l", strconv.Itoa(i))
		if err := os.Symlink(layer, filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		lower = append(lower, name)
	}
	if err := os.Chdir(dir); err != nil {
		return err
	}
	defer os.Chdir("/")
	options := "lowerdir=" + strings.Join(lower, ":") + ",upperdir=upper,workdir=work,volatile"
	return unix.Mount("overlay", "rootfs", "overlay", 0, options)
}
