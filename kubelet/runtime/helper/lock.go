package helper

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// lockShim takes the record lock that says this process is the container's shim. The lock survives exec and ends with
// the process; it would also end when any descriptor of the file were closed, so the file stays open for good.
func lockShim(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	want := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &want); err != nil {
		return nil, fmt.Errorf("cannot lock %s, is another shim alive: %w", path, err)
	}
	return f, nil
}

// withCgroupLock runs act while holding the lock on the parents of pod cgroups.
func withCgroupLock(path string, how int, act func() error) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), how); err != nil {
		return fmt.Errorf("cannot lock %s: %w", path, err)
	}
	return act()
}
