package runtime

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// outputCopy moves one output stream of an exec'd process to its writer.
type outputCopy struct {
	from *os.File
	to   io.Writer
	done chan struct{}
}

// run copies until the end of the stream. finish interrupts its reads; then it goes on until the stream is quiet, because
// a process left in the background may hold the stream open for ever.
func (c *outputCopy) run() error {
	defer close(c.done)
	buf := make([]byte, copyBytes)
	for {
		n, err := c.from.Read(buf)
		if n > 0 {
			if _, err := c.to.Write(buf[:n]); err != nil {
				return c.discard(buf, err)
			}
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return c.drain(buf)
		}
		if err != nil { // end of file, or EIO from a terminal nobody has open
			return nil
		}
	}
}

// discard keeps the process from blocking on a reader that has gone.
func (c *outputCopy) discard(buf []byte, cause error) error {
	for {
		if _, err := c.from.Read(buf); err != nil {
			return cause
		}
	}
}

func (c *outputCopy) drain(buf []byte) error {
	raw, err := c.from.SyscallConn()
	if err != nil {
		return err
	}
	for {
		n := 0
		_ = raw.Control(func(fd uintptr) {
			if awaitReadable(int(fd), drainQuiet) {
				n, _ = unix.Read(int(fd), buf)
			}
		})
		if n <= 0 {
			return nil
		}
		if _, err := c.to.Write(buf[:n]); err != nil {
			return err
		}
	}
}

// finish is called when the process has ended; it returns when its output is copied.
func (c *outputCopy) finish() {
	_ = c.from.SetReadDeadline(past)
	<-c.done
}
