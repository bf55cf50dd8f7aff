package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// lockFile holds the pid of the process that owns the data directory.
const lockFile = "nodeactor.lock"

// ErrInUse is returned when another process owns the data directory.
var ErrInUse = errors.New("data directory in use")

// DirLock is the ownership of a data directory; it ends with Release or with the process.
type DirLock struct{ f *os.File }

// Lock makes dir (0700) if it is absent and takes it for this process. The error
// wraps ErrInUse and names the owner's pid when another process has it. A directory in which
// somebody else keeps something is refused: reset could not tell what is the node's.
func Lock(dir string) (*DirLock, error) {
	if err := usable(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create data directory %s: %w; choose another with --data-dir", dir, cause(err))
	}
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot write data directory %s: %w; make it writable or choose another with --data-dir", dir, cause(err))
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		return nil, fmt.Errorf("cannot use data directory %s: %w by nodeactor (pid %s); stop that process or choose another with --data-dir", dir, ErrInUse, owner(f))
	}
	if err := writePID(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot write data directory %s: %w; free some space or choose another with --data-dir", dir, cause(err))
	}
	return &DirLock{f}, nil
}

// Owner returns the pid that holds dir, or 0 when nobody does.
func Owner(dir string) int {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR, 0)
	if err != nil {
		return 0
	}
	defer f.Close()
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		return 0
	}
	pid, _ := strconv.Atoi(owner(f))
	return pid
}

// Release gives the directory up.
func (l *DirLock) Release() error { return l.f.Close() }

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func owner(f *os.File) string {
	b := make([]byte, 32)
	n, _ := f.ReadAt(b, 0)
	if s := strings.TrimSpace(string(b[:n])); s != "" {
		return s
	}
	return "unknown"
}

// cause strips the path from an *os.PathError: our own message names it already.
func cause(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
