package runtime

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/kubelet/runtime/wire"
)

// past is a deadline that ends a read at once.
var past = time.Unix(1, 0)

// helperEnv is all a helper sees of our environment.
var helperEnv = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "GOMAXPROCS=2"}

// helperProcess is one running helper.
type helperProcess struct {
	pidfd  int
	reply  *os.File
	lines  *bufio.Reader
	stderr *os.File // what a crash says; nil when the user's
}

// streams are a helper's standard three and its console socket; nil means /dev/null.
type streams struct{ stdin, stdout, stderr, console *os.File }

// spawn starts a helper with its request. The request lies in memory, so that no write can block.
func (e *Engine) spawn(op string, request any, s streams) (_ *helperProcess, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot start helper %s: %w", op, err)
		}
	}()
	asked, err := requestFile(request)
	if err != nil {
		return nil, err
	}
	defer asked.Close()
	reply, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	p := &helperProcess{reply: reply, lines: bufio.NewReader(reply), pidfd: -1}
	if err := p.exec(e, op, s, asked, theirs); err != nil {
		p.closeFiles()
		return nil, err
	}
	return p, nil
}

func (p *helperProcess) exec(e *Engine, op string, s streams, asked, theirs *os.File) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	or := func(f *os.File) *os.File {
		if f == nil {
			return null
		}
		return f
	}
	if s.stderr == nil && s.stdout == nil {
		if s.stderr, err = memoryFile("stderr"); err != nil {
			return err
		}
		p.stderr = s.stderr
	}
	files := []*os.File{or(s.stdin), or(s.stdout), or(s.stderr), asked, theirs, e.alive, or(s.console)}
	process, err := os.StartProcess(e.cfg.HelperPath, []string{"nodeactor-runtime", op}, &os.ProcAttr{
		Dir: "/", Env: helperEnv, Files: files, Sys: &syscall.SysProcAttr{Setsid: true, PidFD: &p.pidfd},
	})
	if err != nil {
		return err
	}
	return process.Release()
}

func memoryFile(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

func requestFile(request any) (*os.File, error) {
	f, err := memoryFile("request")
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(f).Encode(request); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	_, err = f.Seek(0, 0)
	return f, err
}

// next reads one reply. When ctx ends first, the helper is killed and the error is ErrDeadline or the context's.
func (p *helperProcess) next(ctx context.Context) (wire.Reply, error) {
	stop := context.AfterFunc(ctx, func() {
		p.kill()
		_ = p.reply.SetReadDeadline(past) // a helper stuck in the kernel keeps its end open
	})
	defer stop()
	line, err := p.lines.ReadBytes('\n')
	switch {
	case err == nil:
		var r wire.Reply
		if err := json.Unmarshal(line, &r); err != nil {
			return r, fmt.Errorf("cannot understand the helper: %w", err)
		}
		return r, nil
	case ctx.Err() != nil:
		return wire.Reply{}, context.Cause(ctx)
	}
	return wire.Reply{}, fmt.Errorf("helper died without an answer: %s", p.lastWords())
}

func (p *helperProcess) kill() { _ = unix.PidfdSendSignal(p.pidfd, unix.SIGKILL, nil, 0) }

// lastWords are the first lines of a crash.
func (p *helperProcess) lastWords() string {
	const enough = 2048
	if p.stderr == nil {
		return "no message"
	}
	raw := make([]byte, enough)
	n, _ := p.stderr.ReadAt(raw, 0)
	if n == 0 {
		return "no message"
	}
	return strings.TrimSpace(string(raw[:n]))
}

func (p *helperProcess) closeFiles() {
	p.reply.Close()
	if p.stderr != nil {
		p.stderr.Close()
	}
}

// finish reaps a helper that is about to end; one that does not end is left to the poller.
func (p *helperProcess) finish(poll *poller) {
	p.closeFiles()
	if awaitReadable(p.pidfd, reapWait) {
		reap(p.pidfd)
		unix.Close(p.pidfd)
		return
	}
	poll.orphan(p.pidfd)
}

// slot waits for one of the places of helpers that make or remove things. The helper's deadline begins afterwards.
func (e *Engine) slot(ctx context.Context) (leave func(), err error) {
	select {
	case e.slots <- struct{}{}:
		return func() { <-e.slots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// heavy is call in a slot.
func (e *Engine) heavy(ctx context.Context, deadline time.Duration, op string, request any) error {
	leave, err := e.slot(ctx)
	if err != nil {
		return err
	}
	defer leave()
	_, err = e.call(ctx, deadline, op, request)
	return err
}

// call runs a helper to its end and returns its only reply, whose Error has become the error.
func (e *Engine) call(ctx context.Context, deadline time.Duration, op string, request any) (wire.Reply, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, deadline, ErrDeadline)
	defer cancel()
	p, err := e.spawn(op, request, streams{})
	if err != nil {
		return wire.Reply{}, err
	}
	defer p.finish(e.poll)
	r, err := p.next(ctx)
	e.logNotes(op, r.Notes)
	if err != nil {
		return r, fmt.Errorf("%s: %w", op, err)
	}
	return r, replyError(r)
}

func (e *Engine) logNotes(op string, notes []string) {
	for _, n := range notes {
		e.cfg.Log.Warn("runtime helper", "op", op, "note", n)
	}
}

func replyError(r wire.Reply) error {
	switch {
	case len(r.Survivors) > 0:
		return &UnkillableError{PIDs: r.Survivors}
	case r.Error != "":
		return errors.New(r.Error)
	}
	return nil
}

// startError is a failed start in the words of Kubernetes.
func startError(r wire.Reply, err error) *StartError {
	if err != nil {
		return &StartError{Reason: ReasonCreateContainer, Message: err.Error(), ExitCode: 128, Cause: err}
	}
	e := &StartError{Reason: ReasonCreateContainer, Message: r.Error, ExitCode: 128}
	if r.Class == wire.ClassRun {
		e.Reason = ReasonRunContainer
		switch {
		case strings.Contains(r.Error, "not found"), strings.Contains(r.Error, "no such file"):
			e.ExitCode = 127
		case strings.Contains(r.Error, "permission denied"), strings.Contains(r.Error, "is a directory"):
			e.ExitCode = 126
		}
	}
	return e
}
