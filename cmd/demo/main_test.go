package main_test

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/test/registry"
)

// run starts the demo program and returns what it printed and its exit code.
func run(t *testing.T, stdin string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.Command(registry.DemoBinary(t), args...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = []string{"B=2", "A=1"}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func TestCommands(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	for _, test := range []struct {
		args, stdin, want string
		code              int
	}{
		{args: "exit 7", code: 7},
		{args: "exit", want: "demo: usage: exit N\n", code: 64},
		{args: "exit x", want: "demo: not a number: x\n", code: 64},
		{args: "dance", want: "demo: unknown command \"dance\"\n", code: 64},
		{args: "env", want: "A=1\nB=2\n"},
		{args: "echo a b", want: "a b\n"},
		{args: "write " + file + " text"},
		{args: "cat " + file + " " + file, want: "texttext"},
		{args: "cat /nonexistent", want: "open /nonexistent: no such file or directory\n", code: 1},
		{args: "upper", stdin: "abc", want: "ABC"},
		{args: "sleep 1ms"},
		{args: "sleep long", want: "demo: not a duration: long\n", code: 64},
	} {
		got, code := run(t, test.stdin, strings.Fields(test.args)...)
		if got != test.want || code != test.code {
			t.Errorf("demo %s: %q, code %d, want %q, %d", test.args, got, code, test.want, test.code)
		}
	}
}

// server starts "demo serve" on a free port and returns its URL and the rest of its output.
func server(t *testing.T, env ...string) (*exec.Cmd, string, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(registry.DemoBinary(t))
	cmd.Env = append(env, "PORT=0")
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	out := bufio.NewReader(pipe)
	line, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	port := line[strings.LastIndex(line, ":")+1:]
	return cmd, "http://127.0.0.1:" + strings.TrimSpace(port), out
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	res, err := (&http.Client{Timeout: 5 * time.Second}).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestServeSaysWhoAnswers(t *testing.T) {
	cmd, url, out := server(t, "POD_NAME=web-1", "DEMO_VERSION=v2", "MESSAGE=good day")
	if got := fetch(t, url); got != "hello from web-1, version v2, good day\n" {
		t.Errorf("/ answers %q", got)
	}
	if got := fetch(t, url+"/healthz") + fetch(t, url+"/version"); got != "ok\nv2\n" {
		t.Errorf("/healthz and /version answer %q", got)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	log, err := io.ReadAll(out)
	if err != nil || !strings.Contains(string(log), "GET / from 127.0.0.1") || !strings.HasSuffix(string(log), "stopping\n") {
		t.Errorf("log is %q, %v", log, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}

func TestGet(t *testing.T) {
	_, url, _ := server(t)
	if out, code := run(t, "", "get", url+"/version"); out != "unknown\n" || code != 0 {
		t.Errorf("get prints %q, code %d", out, code)
	}
}

func TestIgnoreTerm(t *testing.T) {
	cmd := exec.Command(registry.DemoBinary(t), "ignore-term")
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(pipe)
	for range 2 {
		if _, err := out.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatalf("SIGTERM ended it: %v", err)
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
}
