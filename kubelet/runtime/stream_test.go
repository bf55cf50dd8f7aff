package runtime

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
)

// sink is a writer whose content can be looked at while it is written.
type sink struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *sink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

func (s *sink) has(t *testing.T, text string) {
	t.Helper()
	eventually(t, "output "+text, func() bool { return strings.Contains(s.String(), text) })
}

func TestExecTerminal(t *testing.T) {
	h := newHost(t)
	h.sandbox("pod1")
	c := h.start("pod1", "sleep 1000")
	in, typed := io.Pipe()
	out, sizes := &sink{}, make(chan TermSize, 1)
	sizes <- TermSize{Width: 101, Height: 41}
	type result struct {
		code int
		err  error
	}
	ended := make(chan result, 1)
	go func() {
		code, err := h.Exec(context.Background(), c.ID, ExecSpec{Args: []string{"sh"}, Tty: true, Stdin: in, Stdout: out, Resize: sizes})
		ended <- result{code, err}
	}()
	say := func(text string) {
		if _, err := io.WriteString(typed, text); err != nil {
			t.Fatal(err)
		}
	}
	say("stty size; tty; echo $TERM\n")
	out.has(t, "41 101")
	out.has(t, "/dev/pts/")
	out.has(t, "xterm")
	sizes <- TermSize{Width: 77, Height: 33}
	eventually(t, "the new size", func() bool { say("stty size\n"); return strings.Contains(out.String(), "33 77") })
	say("sleep 1000\n")
	time.Sleep(200 * time.Millisecond)
	say("\x03")
	say("echo interrupted $?; exit 9\n")
	if got := <-ended; got.code != 9 || got.err != nil {
		t.Errorf("ended with %+v", got)
	}
	out.has(t, "interrupted 130")
	typed.Close()
}

func TestExecEndsWithItsContextAndSignals(t *testing.T) {
	h := newHost(t)
	h.sandbox("pod1")
	c := h.start("pod1", "sleep 1000")
	if code, err := h.Exec(h.ctx(), c.ID, ExecSpec{Args: []string{"sh", "-c", "kill -TERM $$"}}); err != nil || code != 143 {
		t.Errorf("code %d, %v", code, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_, err := h.Exec(ctx, c.ID, ExecSpec{Args: []string{"sleep", "777"}})
	mustBe(t, err, context.DeadlineExceeded)
	eventually(t, "end of the exec'd process", func() bool {
		var out bytes.Buffer
		_, err := h.Exec(h.ctx(), c.ID, ExecSpec{Args: []string{"ps"}, Stdout: &out})
		return err == nil && !strings.Contains(out.String(), "sleep 777")
	})
	// What stays in the background does not keep the call.
	var out bytes.Buffer
	code, err := h.Exec(h.ctx(), c.ID, ExecSpec{Args: []string{"sh", "-c", "sleep 500 & echo started"}, Stdout: &out})
	if err != nil || code != 0 || out.String() != "started\n" {
		t.Errorf("code %d, %v, %q", code, err, out.String())
	}
	// A megabyte each way.
	big := strings.Repeat("0123456789abcdef", 1<<16)
	out.Reset()
	if code, err := h.Exec(h.ctx(), c.ID, ExecSpec{Args: []string{"cat"}, Stdin: strings.NewReader(big), Stdout: &out}); err != nil || code != 0 || out.String() != big {
		t.Errorf("code %d, %v, %d bytes", code, err, out.Len())
	}
	if err := h.Kill(h.ctx(), c.ID); err != nil {
		t.Fatal(err)
	}
	_, err = h.Exec(h.ctx(), c.ID, ExecSpec{Args: []string{"true"}})
	mustBe(t, err, ErrNotRunning)
}

func TestAttach(t *testing.T) {
	h := newHost(t)
	h.sandbox("pod1")
	c := h.start("pod1", "while read line; do echo got $line; done; echo end >&2", func(s *ContainerSpec) { s.Stdin, s.StdinOnce = true, true })
	var out, errOut sink
	if err := h.Attach(h.ctx(), c.ID, AttachSpec{Stdin: strings.NewReader("one\ntwo\n"), Stdout: &out, Stderr: &errOut}); err != nil {
		t.Fatal(err)
	}
	if out.String() != "got one\ngot two\n" || errOut.String() != "end\n" {
		t.Errorf("out %q, err %q", out.String(), errOut.String())
	}
	if got := h.wait(c.ID); got.ExitCode != 0 {
		t.Errorf("exit is %+v", got)
	}
	if lines := logLines(t, c.LogPath); len(lines) != 3 {
		t.Errorf("log is %v", lines)
	}
}

func TestAttachTerminal(t *testing.T) {
	h := newHost(t)
	h.sandbox("pod1")
	c := h.start("pod1", "exec sh", func(s *ContainerSpec) { s.Stdin, s.Tty = true, true })
	in, typed := io.Pipe()
	var out sink
	sizes := make(chan TermSize, 1)
	sizes <- TermSize{Width: 99, Height: 11}
	ended := make(chan error, 1)
	go func() {
		ended <- h.Attach(context.Background(), c.ID, AttachSpec{Stdin: in, Stdout: &out, Resize: sizes})
	}()
	eventually(t, "the size", func() bool {
		_, err := io.WriteString(typed, "stty size\n")
		return err == nil && strings.Contains(out.String(), "11 99")
	})
	if _, err := io.WriteString(typed, "exit 6\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	typed.Close()
	if got := h.wait(c.ID); got.ExitCode != 6 {
		t.Errorf("exit is %+v", got)
	}
}

// A client that does not read is dropped; the container does not wait for it.
func TestStuckClientDoesNotHoldUpTheContainer(t *testing.T) {
	h := newHost(t)
	h.sandbox("pod1")
	c := h.start("pod1", "while ! test -e /go; do sleep 0.02; done; head -c 5000000 /dev/zero | tr '\\0' x; echo; echo done")
	conn, err := h.dialShim(c.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := h.Exec(h.ctx(), c.ID, ExecSpec{Args: []string{"touch", "/go"}}); err != nil {
		t.Fatal(err)
	}
	if got := h.wait(c.ID); got.ExitCode != 0 {
		t.Errorf("exit is %+v", got)
	}
	lines := logLines(t, c.LogPath)
	if last := lines[len(lines)-1]; last.text != "done" {
		t.Errorf("the last of %d lines has %d bytes", len(lines), len(last.text))
	}
}
