package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/kubelet/runtime/wire"
	"github.com/nodeactor/nodeactor/supervision"
)

// Exec implements Runtime.
func (e *Engine) Exec(ctx context.Context, id string, spec ExecSpec) (int, error) {
	if err := supervision.CheckFence(ctx); err != nil {
		return 0, fmt.Errorf("cannot exec in container %s: %w", id, err)
	}
	c, running, err := e.lookup(id)
	if err != nil {
		return 0, fmt.Errorf("cannot exec: %w", err)
	}
	if !running {
		return 0, fmt.Errorf("cannot exec in container %s: %w", id, ErrNotRunning)
	}
	if len(spec.Args) == 0 || spec.Args[0] == "" {
		return 0, &StartError{Reason: ReasonRunContainer, Message: "no command specified", ExitCode: 128}
	}
	s := newExecSession(e, &spec)
	defer s.close()
	if err := s.open(); err != nil {
		return 0, fmt.Errorf("cannot exec in container %s: %w", id, err)
	}
	if err := s.start(ctx, e.execRequest(c, &spec, s.size)); err != nil {
		return 0, err
	}
	return s.wait(ctx)
}

// execRequest resolves what the spec leaves to the container.
func (e *Engine) execRequest(c *container, spec *ExecSpec, size TermSize) wire.ExecRequest {
	own := &c.record.Spec
	sandbox := SandboxSpec{}
	if p := e.pod(own.PodUID); p != nil {
		sandbox = p.record.Spec
	}
	like := *own
	like.Tty = spec.Tty
	r := wire.ExecRequest{
		Layout: e.layout, ID: own.ID, Args: spec.Args, Env: append(wire.Environment(&like, &sandbox), spec.Env...), Cwd: spec.Cwd,
		UID: own.UID, GID: own.GID, Groups: own.Groups, Tty: spec.Tty, Width: size.Width, Height: size.Height,
	}
	if spec.User {
		r.UID, r.GID, r.Groups = spec.UID, spec.GID, spec.Groups
	}
	if r.Cwd == "" {
		r.Cwd = own.Cwd
	}
	if r.Cwd == "" {
		r.Cwd = "/"
	}
	return r
}

// execSession is one Exec call's process and the streams to it.
type execSession struct {
	e      *Engine
	spec   *ExecSpec
	size   TermSize
	helper *helperProcess
	pidfd  int
	theirs streams    // the process's ends
	close_ []*os.File // what is ours to close
	input  *os.File   // to the process, nil when it reads a file of the caller's
	output []*outputCopy
	master *os.File
	socket *os.File // on which the terminal's master comes
	group  *supervision.Group
}

func newExecSession(e *Engine, spec *ExecSpec) *execSession {
	return &execSession{e: e, spec: spec, pidfd: -1}
}

func (s *execSession) close() {
	for _, f := range s.close_ {
		f.Close()
	}
	if s.pidfd >= 0 {
		unix.Close(s.pidfd)
	}
}

func (s *execSession) own(f *os.File) *os.File {
	s.close_ = append(s.close_, f)
	return f
}

// open makes the pipes or the terminal's socket.
func (s *execSession) open() error {
	if s.spec.Tty {
		return s.openTerminal()
	}
	if err := s.openInput(); err != nil {
		return err
	}
	var err error
	if s.theirs.stdout, err = s.openOutput(s.spec.Stdout); err != nil {
		return err
	}
	s.theirs.stderr, err = s.openOutput(s.spec.Stderr)
	return err
}

func (s *execSession) openTerminal() error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	s.socket = s.own(os.NewFile(uintptr(fds[0]), "console"))
	s.theirs.console = s.own(os.NewFile(uintptr(fds[1]), "console"))
	select {
	case s.size = <-s.spec.Resize:
	default:
	}
	return nil
}

func (s *execSession) openInput() error {
	if s.spec.Stdin == nil {
		return nil
	}
	if f, ok := s.spec.Stdin.(*os.File); ok {
		s.theirs.stdin = f
		return nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	s.theirs.stdin, s.input = s.own(r), s.own(w)
	return nil
}

func (s *execSession) openOutput(to io.Writer) (*os.File, error) {
	if to == nil {
		return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	}
	if f, ok := to.(*os.File); ok {
		return f, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.output = append(s.output, &outputCopy{from: s.own(r), to: to})
	return s.own(w), nil
}

// start runs the helper until the process is the user's, and starts the copying. It goes on when ctx ends: a helper killed
// half-way could leave the process behind, unknown.
func (s *execSession) start(ctx context.Context, request wire.ExecRequest) error {
	bounded, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), s.e.cfg.StartDeadline, ErrDeadline)
	defer cancel()
	var err error
	if s.helper, err = s.e.spawn(wire.OpExec, request, s.theirs); err != nil {
		return startError(wire.Reply{}, err)
	}
	s.closeTheirs()
	r, err := s.helper.next(bounded)
	s.e.logNotes(wire.OpExec, r.Notes)
	if err == nil && r.Error == "" {
		s.pidfd, err = s.openProcess(r.PID)
	}
	if err == nil && r.Error == "" && s.spec.Tty {
		err = s.takeTerminal()
	}
	if err != nil || r.Error != "" {
		s.helper.kill()
		s.helper.finish(s.e.poll)
		return startError(r, err)
	}
	s.copy(ctx)
	return nil
}

// closeTheirs closes the process's ends here, but not a file of the caller's.
func (s *execSession) closeTheirs() {
	for _, f := range []*os.File{s.theirs.stdin, s.theirs.stdout, s.theirs.stderr, s.theirs.console} {
		if f != nil && f != s.spec.Stdin && f != s.spec.Stdout && f != s.spec.Stderr {
			f.Close()
		}
	}
}

// openProcess opens the pidfd of the exec'd process. Its waiter reports before it reaps, so while there is no report the
// pid is still that process's; -1 when it has ended.
func (s *execSession) openProcess(pid int) (int, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return -1, nil
	}
	return fd, err
}

func (s *execSession) takeTerminal() error {
	_ = s.socket.SetReadDeadline(time.Time{})
	name, oob := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(int(s.socket.Fd()), name, oob, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
	if err != nil {
		return fmt.Errorf("cannot receive the terminal: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return errors.New("cannot receive the terminal: no message")
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return errors.New("cannot receive the terminal: no descriptor")
	}
	if err := unix.SetNonblock(fds[0], true); err != nil { // so that reads can be ended
		return err
	}
	s.master = s.own(os.NewFile(uintptr(fds[0]), "terminal"))
	s.input = s.master
	if s.spec.Stdout != nil {
		s.output = append(s.output, &outputCopy{from: s.master, to: s.spec.Stdout})
	}
	return nil
}

// copy starts what moves the streams.
func (s *execSession) copy(ctx context.Context) {
	s.group = s.e.newGroup(ctx, "exec")
	for _, out := range s.output {
		out.done = make(chan struct{})
		s.group.Go("output", func(context.Context) error { return out.run() })
	}
	if s.input != nil && s.spec.Stdin != nil {
		s.group.Go("input", func(context.Context) error { return s.copyInput() })
	}
	if s.master != nil && s.spec.Resize != nil {
		s.group.Go("resize", s.copySize)
	}
}

// copyInput ends with the reader or when the process has closed its end. A terminal has no end of input to pass on.
func (s *execSession) copyInput() error {
	_, _ = io.Copy(s.input, s.spec.Stdin) // a process need not read all
	if s.master == nil {
		s.input.Close()
	}
	return nil
}

func (s *execSession) copySize(ctx context.Context) error {
	for {
		select {
		case size, ok := <-s.spec.Resize:
			if !ok {
				return nil
			}
			s.resize(size)
		case <-ctx.Done():
			return nil
		}
	}
}

// resize goes round os.File.Fd, which would make the terminal blocking.
func (s *execSession) resize(size TermSize) {
	raw, err := s.master.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: size.Height, Col: size.Width})
	})
}

// wait returns the exit code once the process has ended and its output is copied. When ctx ends the process is killed.
func (s *execSession) wait(ctx context.Context) (int, error) {
	defer s.helper.finish(s.e.poll)
	defer s.group.Cancel()
	stop := context.AfterFunc(ctx, func() {
		if s.pidfd >= 0 {
			_ = unix.PidfdSendSignal(s.pidfd, unix.SIGKILL, nil, 0)
		}
	})
	defer stop()
	after, cancel := graceAfter(ctx, killWait)
	defer cancel()
	r, err := s.helper.next(after)
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	if err != nil {
		return 0, fmt.Errorf("cannot wait for the exec'd process: %w", err)
	}
	for _, out := range s.output {
		out.finish()
	}
	return exitOf(r.Status, 0, time.Time{}).code, nil
}

// graceAfter is a context that ends d after ctx does.
func graceAfter(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer, end := context.WithTimeout(late, d)
		defer end()
		<-timer.Done()
		cancel()
	})
	return late, func() { stop(); cancel() }
}
