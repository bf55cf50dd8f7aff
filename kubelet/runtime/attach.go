package runtime

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/kubelet/runtime/wire"
)

// Packets of a shim's socket; the first byte of each says what it is. They are the C code's (shim/shim.h).
const (
	packetStdin      = 0
	packetStdout     = 1
	packetStderr     = 2
	packetCloseStdin = 3
	packetResize     = 4
	packetReopen     = 5
	packetOwnStdin   = 6
)

// dialShim connects to a container's shim. The path is relative to the directory, because a socket's may have only 107
// bytes.
func (e *Engine) dialShim(id string) (*os.File, error) {
	dir, err := os.Open(e.layout.Container(id))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	path := fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), wire.AttachName)
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		unix.Close(fd)
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "attach"), nil
}

// Attach implements Runtime.
func (e *Engine) Attach(ctx context.Context, id string, spec AttachSpec) error {
	c, running, err := e.lookup(id)
	if err != nil {
		return fmt.Errorf("cannot attach: %w", err)
	}
	if !running {
		return fmt.Errorf("cannot attach to container %s: %w", id, ErrNotRunning)
	}
	conn, err := e.dialShim(id)
	if err != nil {
		return fmt.Errorf("cannot attach to container %s: %w", id, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(past) })
	defer stop()
	group := e.newGroup(ctx, "attach")
	defer group.Cancel()
	if own := &c.record.Spec; spec.Stdin != nil && (own.Stdin || own.Tty) {
		group.Go("input", func(context.Context) error { return attachInput(conn, spec.Stdin, own.StdinOnce) })
	}
	if spec.Resize != nil {
		group.Go("resize", func(ctx context.Context) error { return attachSize(ctx, conn, spec.Resize) })
	}
	if err := attachOutput(conn, spec); err != nil && ctx.Err() == nil {
		return fmt.Errorf("cannot attach to container %s: %w", id, err)
	}
	return context.Cause(ctx)
}

func attachInput(conn io.Writer, from io.Reader, once bool) error {
	if _, err := conn.Write([]byte{packetOwnStdin}); err != nil {
		return err
	}
	packet := make([]byte, 1+copyBytes)
	packet[0] = packetStdin
	for {
		n, err := from.Read(packet[1:])
		if n > 0 {
			if _, err := conn.Write(packet[:1+n]); err != nil {
				return err
			}
		}
		if err != nil {
			break
		}
	}
	if once { // otherwise the next client may have something to say
		_, err := conn.Write([]byte{packetCloseStdin})
		return err
	}
	return nil
}

func attachSize(ctx context.Context, conn io.Writer, sizes <-chan TermSize) error {
	for {
		select {
		case size, ok := <-sizes:
			if !ok {
				return nil
			}
			packet := binary.LittleEndian.AppendUint16([]byte{packetResize}, size.Width)
			if _, err := conn.Write(binary.LittleEndian.AppendUint16(packet, size.Height)); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// attachOutput copies until the shim ends.
func attachOutput(conn io.Reader, spec AttachSpec) error {
	packet := make([]byte, 1+copyBytes)
	for {
		n, err := conn.Read(packet)
		if err != nil || n == 0 {
			if err == io.EOF || n == 0 && err == nil {
				return nil
			}
			return err
		}
		to := spec.Stdout
		if packet[0] == packetStderr {
			to = spec.Stderr
		} else if packet[0] != packetStdout {
			continue
		}
		if to != nil {
			if _, err := to.Write(packet[1:n]); err != nil {
				return err
			}
		}
	}
}

// ReopenLog implements Runtime.
func (e *Engine) ReopenLog(ctx context.Context, id string) error {
	if _, running, err := e.lookup(id); err != nil || !running {
		if err == nil {
			err = ErrNotRunning
		}
		return fmt.Errorf("cannot reopen the log of container %s: %w", id, err)
	}
	ctx, cancel := context.WithTimeout(ctx, logReopenDeadline)
	defer cancel()
	if err := e.reopen(ctx, id); err != nil {
		return fmt.Errorf("cannot reopen the log of container %s: %w", id, err)
	}
	return nil
}

func (e *Engine) reopen(ctx context.Context, id string) error {
	conn, err := e.dialShim(id)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(past) })
	defer stop()
	if _, err := conn.Write([]byte{packetReopen}); err != nil {
		return err
	}
	for packet := make([]byte, 1+copyBytes); ; {
		n, err := conn.Read(packet)
		if err != nil {
			return err
		}
		if n == 0 || packet[0] == packetReopen {
			return nil
		}
	}
}
