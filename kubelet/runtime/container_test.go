package runtime

import (
	"bytes"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestContainerRunsLogsAndExits(t *testing.T) {
	h := newHost(t)
	h.sandbox("pod1")
	out, c := h.output("pod1", "echo hello; echo oops >&2; hostname; exit 3")
	if c.ExitCode != 3 || c.Reason != ReasonError || c.Signal != 0 {
		t.Errorf("exit is %+v", c)
	}
	if !strings.Contains(out, "hello") || !strings.Contains(out, "oops") || !strings.Contains(out, "pod1") {
		t.Errorf("log is %q", out)
	}
	if c.StartedAt.IsZero() || c.FinishedAt.Before(c.StartedAt) {
		t.Errorf("times are %v, %v", c.StartedAt, c.FinishedAt)
	}
	select {
	case ev := <-h.Events():
		if ev.ID != c.ID || ev.PodUID != "pod1" {
			t.Errorf("event is %+v", ev)
		}
	case <-time.After(testDeadline):
		t.Error("no event")
	}
}

func TestKillAndSignal(t *testing.T) {
	h := newHost(t)
	h.sandbox("pod1")
	c := h.start("pod1", "trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done")
	eventually(t, "trap", func() bool { return len(logLines(t, c.LogPath)) == 1 }) // before it, pid 1 ignores the signal
	if err := h.Signal(h.ctx(), c.ID, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := h.wait(c.ID); got.ExitCode != 7 {
		t.Errorf("after TERM: %+v", got)
	}
	c = h.start("pod1", "sleep 1000")
	if err := h.Kill(h.ctx(), c.ID); err != nil {
		t.Fatal(err)
	}
	if got, _ := h.Container(h.ctx(), c.ID); got.State != Exited || got.ExitCode != 137 || got.Signal != 9 {
		t.Errorf("after Kill: %+v", got)
	}
	mustBe(t, h.Signal(h.ctx(), c.ID, syscall.SIGTERM), ErrNotRunning)
}

func TestExec(t *testing.T) {
	h := newHost(t)
	h.sandbox("pod1")
	c := h.start("pod1", "sleep 1000")
	var out, errOut bytes.Buffer
	code, err := h.Exec(h.ctx(), c.ID, ExecSpec{
		Args: []string{"sh", "-c", "cat; echo $FOO; echo bad >&2; exit 5"}, Env: []string{"FOO=bar"},
		Stdin: strings.NewReader("in\n"), Stdout: &out, Stderr: &errOut,
	})
	if err != nil || code != 5 || out.String() != "in\nbar\n" || errOut.String() != "bad\n" {
		t.Errorf("code %d, error %v, out %q, err %q", code, err, out.String(), errOut.String())
	}
	_, err = h.Exec(h.ctx(), c.ID, ExecSpec{Args: []string{"nothere"}})
	mustBe(t, err, ErrStart)
	t.Log(err)
}
