package volumes

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mountsBelow lists the mount points at or below dir, deepest and newest first.
func mountsBelow(dir string) ([]string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []string
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		fields := strings.Fields(sc.Text())
		if len(fields) < 5 {
			continue
		}
		if p := unescape(fields[4]); p == dir || strings.HasPrefix(p, dir+"/") {
			out = append([]string{p}, out...)
		}
	}
	return out, sc.Err()
}

// unescape undoes the octal escapes of mountinfo.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// unmountBelow unmounts everything at or below dir. What is busy is detached: it goes when its last user does.
func unmountBelow(dir string) error {
	points, err := mountsBelow(dir)
	if err != nil {
		return err
	}
	for _, p := range points {
		e := unix.Unmount(p, unix.UMOUNT_NOFOLLOW)
		if errors.Is(e, unix.EBUSY) {
			e = unix.Unmount(p, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH)
		}
		if e != nil && !errors.Is(e, unix.EINVAL) && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("cannot unmount %s: %w", p, e))
		}
	}
	return err
}

// RemoveTree unmounts what is mounted below dir and deletes dir. It deletes nothing while a mount point is left.
func RemoveTree(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	if err := unmountBelow(dir); err != nil {
		return err
	}
	left, err := mountsBelow(dir)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("cannot remove %s: %s is still mounted", dir, left[0])
	}
	return os.RemoveAll(dir)
}

func isMountPoint(dir string) bool {
	points, err := mountsBelow(dir)
	if err != nil {
		return false
	}
	for _, p := range points {
		if p == dir {
			return true
		}
	}
	return false
}
