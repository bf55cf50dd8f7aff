package harness_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFromOutside runs a test of another module which imports the harness, and holds that
// nothing comes with it but the standard library and supervision.
func TestFromOutside(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a module of its own: left out by -short")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, dir, "go.mod", fmt.Sprintf("module example.com/outside\n\ngo 1.26.0\n\nrequire github.com/nodeactor/nodeactor v0.0.0\n\nreplace github.com/nodeactor/nodeactor => %s\n", root))
	write(t, dir, "outside_test.go", outsideTest)
	if out, err := command(dir, "test", "-run", "Echo", "."); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	replays(t, dir)
	out, err := command(dir, "list", "-deps", "-test", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for pkg := range strings.Lines(out) {
		inside, ours := strings.CutPrefix(strings.TrimSpace(pkg), "github.com/nodeactor/nodeactor/")
		if ours && inside != "test/harness" && inside != "supervision" && !strings.HasPrefix(inside, "supervision/core") || !ours && !strings.HasPrefix(pkg, "example.com/outside") {
			t.Errorf("the harness needs %s", pkg)
		}
	}
}

// replays holds that the command which a failed test prints leads to the same failure.
func replays(t *testing.T, dir string) {
	t.Helper()
	first, err := command(dir, "test", "-run", "Fails", ".")
	_, after, ok := strings.Cut(first, "run it again with\n")
	line, _, _ := strings.Cut(after, "\n")
	if err == nil || !ok {
		t.Fatalf("a test that must fail: %v\n%s", err, first)
	}
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir, cmd.Env = dir, environment()
	again, err := cmd.CombinedOutput()
	failure := regexp.MustCompile(`got int [0-9]+, want int 2`)
	want := failure.FindString(first)
	if got := failure.FindString(string(again)); err == nil || got == "" || got != want {
		t.Errorf("%s: %v, %q and not %q\n%s", line, err, got, want, again)
	}
}

const outsideTest = `package outside

import (
	"context"
	"testing"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/test/harness"
)

func TestEcho(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		p := k.Probe("p")
		k.Tree(harness.Group("root", harness.OneForOne, harness.Actor("echo", func(ctx supervision.Context, msg any) error {
			if s, ok := msg.(string); ok {
				ctx.Send(p.Ref(), s)
			}
			return nil
		})))
		k.Send("root/echo", "hello")
		p.Expect("hello")
	})
}

func TestFails(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		p := k.Probe("p")
		k.Tree(harness.Group("root", harness.OneForOne))
		for n := range 3 {
			k.Go("sender", func(context.Context) { k.System().Send(p.Ref(), n) })
		}
		p.Expect(2)
	})
}
`

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// command runs go in a directory; no module has to be fetched for that.
func command(dir string, args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = dir, environment()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func environment() []string {
	return append(os.Environ(), "GOFLAGS=-p=2", "GOPROXY=off", "GOWORK=off")
}
