package harness_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	if out, err := command(dir, "test", "."); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
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

const outsideTest = `package outside

import (
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
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-p=2", "GOPROXY=off", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
