package helper

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/opencontainers/runc/libcontainer"
	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/kubelet/runtime/wire"
)

// stdio are a container's streams as the shim keeps them, and their other ends until the container has them.
type stdio struct {
	log, stdout, stderr, stdin, listen *os.File // the shim's
	theirs                             []*os.File
	console                            *os.File // our end of the socket the terminal's master comes from
	tty                                bool
}

// openIO opens the log, the pipes or terminal, and the socket for attached clients.
func openIO(r *wire.StartRequest) (*stdio, error) {
	s := &stdio{tty: r.Spec.Tty, theirs: make([]*os.File, 3)}
	if r.Pause {
		return s, nil
	}
	var err error
	if err = os.MkdirAll(filepath.Dir(r.Spec.LogPath), 0o755); err != nil {
		return nil, fmt.Errorf("cannot create the log directory: %w", err)
	}
	if s.log, err = os.OpenFile(r.Spec.LogPath, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640); err != nil {
		return nil, fmt.Errorf("cannot open the log: %w", err)
	}
	if s.listen, err = listenAttach(r.Layout.Container(r.Spec.ID)); err != nil {
		return nil, fmt.Errorf("cannot listen for attached clients: %w", err)
	}
	if s.tty {
		return s, nil
	}
	if s.stdout, s.theirs[1], err = pipe(); err != nil {
		return nil, err
	}
	if s.stderr, s.theirs[2], err = pipe(); err != nil {
		return nil, err
	}
	if r.Spec.Stdin {
		s.theirs[0], s.stdin, err = pipe()
	}
	return s, err
}

// pipe makes a blocking pipe: os.Pipe's would be non-blocking for the container as well.
func pipe() (r, w *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "pipe"), os.NewFile(uintptr(fds[1]), "pipe"), nil
}

// listenAttach binds relative to the directory, because a socket's path may have only 107 bytes.
func listenAttach(dir string) (*os.File, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "attach")
	path := fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), wire.AttachName)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return nil, err
	}
	return f, unix.Listen(fd, 16)
}

// give hands the container its ends.
func (s *stdio) give(p *libcontainer.Process) {
	if s.tty {
		p.ConsoleWidth, p.ConsoleHeight = 80, 24
		s.console, p.ConsoleSocket = socketPair()
		s.theirs[0] = p.ConsoleSocket
		return
	}
	// A nil *os.File in an io.Reader would not be nil.
	if s.theirs[0] != nil {
		p.Stdin = s.theirs[0]
	}
	if s.theirs[1] != nil {
		p.Stdout, p.Stderr = s.theirs[1], s.theirs[2]
	}
}

// started closes the container's ends here and takes the terminal's master.
func (s *stdio) started() error {
	for _, f := range s.theirs {
		if f != nil {
			f.Close()
		}
	}
	if !s.tty {
		return nil
	}
	defer s.console.Close()
	master, err := receiveFile(s.console)
	s.stdout = master
	return err
}

func socketPair() (ours, theirs *os.File) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil
	}
	return os.NewFile(uintptr(fds[0]), "console"), os.NewFile(uintptr(fds[1]), "console")
}

func receiveFile(socket *os.File) (*os.File, error) {
	name, oob := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(int(socket.Fd()), name, oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot receive the terminal: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return nil, fmt.Errorf("cannot receive the terminal: %v messages, %w", len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, fmt.Errorf("cannot receive the terminal: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "terminal"), nil
}
