package storage

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// What is in the directory of a shared store.
const (
	fileName   = "store.db"
	lockName   = "lock"
	socketName = "host.sock"
	// dirMode keeps the store to one user: whoever can connect can write.
	dirMode  = 0o700
	fileMode = 0o600
	// longestSocket is the longest path of a socket that the kernel takes.
	longestSocket = 100
)

// directory is that of a shared store.
type directory struct {
	path string
	// self is the directory opened, for its name in /proc.
	self *os.File
	// lock is the lock file; who has it locked is the host. The kernel frees it when the process ends, however it ends.
	lock *os.File
}

func openDirectory(path string) (*directory, error) {
	if err := os.MkdirAll(path, dirMode); err != nil {
		return nil, fmt.Errorf("cannot open store %s: %w", path, err)
	}
	self, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open store %s: %w", path, err)
	}
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_CREATE|os.O_RDWR, fileMode)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open store %s: %w", path, err), self.Close())
	}
	return &directory{path: path, self: self, lock: lock}, nil
}

// tryLock makes this process the host, unless another one is.
func (d *directory) tryLock() (bool, error) {
	err := unix.Flock(int(d.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot lock %s: %w", d.lock.Name(), err)
	}
	return true, nil
}

func (d *directory) unlock() { _ = unix.Flock(int(d.lock.Fd()), unix.LOCK_UN) }

func (d *directory) close() error { return errors.Join(d.lock.Close(), d.self.Close()) }

// socket is the path of the socket, by way of /proc when it is too long for the kernel.
func (d *directory) socket() string {
	path := filepath.Join(d.path, socketName)
	if len(path) <= longestSocket {
		return path
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", d.self.Fd(), socketName)
}

// listen opens the socket; what the last host left of it is removed, which only the host may do.
func (d *directory) listen() (net.Listener, error) {
	path := d.socket()
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("cannot remove an old socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the other processes of the store: %w", err)
	}
	if err := os.Chmod(path, fileMode); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot keep others from the socket of the store: %w", err), l.Close())
	}
	// A next host may have made its own socket by the time this one is closed.
	l.SetUnlinkOnClose(false)
	return l, nil
}

// dial connects to the host; no host may be there, or not yet.
func (d *directory) dial() (net.Conn, error) {
	return net.DialUnix("unix", nil, &net.UnixAddr{Name: d.socket(), Net: "unix"})
}
