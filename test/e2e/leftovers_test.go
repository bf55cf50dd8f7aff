package e2e

import (
	"os"
	"testing"

	"github.com/nodeactor/nodeactor/test/hostimage"
)

// TestNothingIsLeft compares the host before and after: first after deleting every
// object while the node runs, then after a reset.
func TestNothingIsLeft(t *testing.T) {
	bin := binDir(t)
	sweep(t, bin, os.TempDir())
	empty := take(t)
	h := newHost(t, 7)
	h.start()
	h.importDemo()
	idle := take(t)
	h.apply(demoDeployment("web", 3, "      volumes: [{name: scratch, emptyDir: {medium: Memory}}]\n"))
	h.apply(onePod("hostnet", `command: ["/demo", "sleep", "3600"]`, "Always"))
	h.waitPods("web", 3)
	h.kubectl("delete", "deployment,pod", "--all", "--timeout=60s")
	h.eventually(podLimit, "the pods to be gone", func() error {
		if out := h.kubectl("get", "pods", "-A", "-o", "name"); out != "" {
			return notYet("%s", out)
		}
		return nil
	})
	h.eventually(podLimit, "the host to be as before the pods", func() error { return same(idle, take(t)) })

	h.apply(demoDeployment("web", 2, ""))
	h.waitPods("web", 2)
	h.stop()
	out, err := h.reset()
	must(t, err)
	mustContain(t, "what reset says", out, h.dir)
	h.eventually(podLimit, "the host to be as before the node", func() error { return same(empty, take(t)) })
	if _, err := os.Stat(h.dir); !os.IsNotExist(err) {
		t.Errorf("the data directory is still there: %v", err)
	}
}
