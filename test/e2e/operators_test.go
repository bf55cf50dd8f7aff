package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nodeactor/nodeactor/test/readme"
)

// TestOperatorOfTheManual runs the node that the manual tells how to build, and does what it tells to do with it.
func TestOperatorOfTheManual(t *testing.T) {
	root, err := filepath.Abs("../..")
	must(t, err)
	section, err := readme.Read(filepath.Join(root, "README.md"), "Write an operator")
	must(t, err)
	overlay, err := section.Overlay(root, t.TempDir())
	must(t, err)
	h := newHost(t, 32)
	place := h.program("mynode", "./greeter/node", "-overlay", overlay)
	ran := 0
	for _, step := range section.Steps {
		command := strings.TrimSpace(step.Text)
		switch {
		case step.Path != "" || !strings.Contains(command, "mynode") || strings.HasPrefix(command, "go build"):
			continue
		case command == "bin/mynode run":
			h.start()
		default:
			if strings.Contains(command, "mynode tree") {
				command += " --data-dir " + h.dir
			}
			out := h.shell(place, command)
			if strings.Contains(command, "mynode tree") && !strings.Contains(out, "node/controllers/greeting/dispatcher") {
				t.Errorf("the tree of greetings is\n%s", out)
			}
		}
		ran++
	}
	if ran != 4 {
		t.Errorf("%d commands were run", ran)
	}
}

// TestWebsitesInANode runs examples/websites as a kind of a node: its files come, are mended, and go with the object; what is wrong with one is
// said in its status.
func TestWebsitesInANode(t *testing.T) {
	h := newHost(t, 33)
	folder := t.TempDir()
	t.Setenv("WEBSITES", folder)
	h.program("nodeactor", "./examples/websites/node")
	h.start()
	h.apply(website("shop", "title: Shop, pages: {index: welcome}"))
	h.kubectl("wait", "--for=jsonpath={.status.phase}=Ready", "website/shop", "--timeout=30s")
	h.publishes(filepath.Join(folder, "default", "shop", "index.html"), "<p>welcome</p>")
	h.apply(website("shop", "title: Shop, pages: {index: sale}"))
	h.publishes(filepath.Join(folder, "default", "shop", "index.html"), "<p>sale</p>")

	h.apply(website("bad", "title: Shop, pages: {'../x': oops}"))
	h.eventually(podLimit, "the reason of the bad page", func() error {
		why, err := h.try("get", "website", "bad", "-o", "jsonpath={.status.phase}: {.status.lastError}")
		if err == nil && (!strings.HasPrefix(why, "Retrying: ") || !strings.Contains(why, "lower case letters")) {
			return notYet("its status is %q", why)
		}
		return err
	})
	h.kubectl("delete", "websites", "--all", "--timeout=30s")
	if left, _ := filepath.Glob(filepath.Join(folder, "default", "*")); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// publishes waits until a page says something.
func (h *host) publishes(path, text string) {
	h.t.Helper()
	h.eventually(podLimit, path+" to say "+text, func() error {
		html, err := os.ReadFile(path)
		if err == nil && !strings.Contains(string(html), text) {
			return notYet("it says %s", html)
		}
		return err
	})
}

// program builds a program that is this host's node from now on, beside the others that a node needs, into the folder bin of a place, which it
// returns.
func (h *host) program(name, pkg string, flags ...string) (place string) {
	h.t.Helper()
	place = h.t.TempDir()
	bin := filepath.Join(place, "bin")
	must(h.t, os.Mkdir(bin, 0o700))
	for _, other := range []string{"nodeactor-runtime", "nodeactor-kubectl"} {
		must(h.t, os.Symlink(filepath.Join(h.bin, other), filepath.Join(bin, other)))
	}
	build(h.t, filepath.Join(bin, name), pkg, flags...)
	if name != "nodeactor" {
		must(h.t, os.Symlink(name, filepath.Join(bin, "nodeactor")))
	}
	h.bin = bin
	return place
}

// build builds a package of the module, which is named from its root.
func build(t *testing.T, path, pkg string, flags ...string) {
	t.Helper()
	cmd := exec.Command("go", slices.Concat([]string{"build", "-p", "2", "-o", path}, flags, []string{pkg})...)
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot build %s: %v\n%s", pkg, err, out)
	}
}

// shell runs a command of the manual, as the administrator.
func (h *host) shell(dir, command string) string {
	h.t.Helper()
	cmd := exec.Command("sh", "-ec", command)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "KUBECONFIG="+filepath.Join(h.dir, "admin.kubeconfig"), "HOME="+h.home)
	out, err := cmd.CombinedOutput()
	if err != nil {
		h.t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}
