package wire

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// LockHolder is the process that holds the record lock on path, 0 when there is none. Because the lock ends with its
// holder, the answer cannot name a process that merely has the same pid.
func LockHolder(path string) int {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0
	}
	defer f.Close()
	ask := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if unix.FcntlFlock(f.Fd(), unix.F_GETLK, &ask) != nil || ask.Type == unix.F_UNLCK {
		return 0
	}
	return int(ask.Pid)
}
