package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/nodeactor/nodeactor/kubelet/network"
	"github.com/nodeactor/nodeactor/test/daemon"
	"github.com/nodeactor/nodeactor/test/hostimage"
)

// TestNothingIsLeft compares the host before and after: first after deleting every
// object while the node runs, then after a reset.
func TestNothingIsLeft(t *testing.T) {
	daemon.Sweep(t, daemon.Bin(t), runPrefix)
	empty := take(t)
	h := newHost(t, 7)
	h.start()
	h.importDemo()
	idle := take(t)
	h.apply(demoDeployment("web", 3, "      volumes: [{name: scratch, emptyDir: {medium: Memory}}]\n"))
	h.apply(onePod("hostnet", `command: ["/demo", "sleep"]`, "Always"))
	h.waitPods("web", 3)
	h.kubectl("delete", "deployment,pod", "--all", "--timeout=60s")
	h.eventually(podLimit, "the pods to be gone", func() error {
		if out := h.kubectl("get", "pods", "-A", "-o", "name"); out != "" {
			return notYet("%s", out)
		}
		return nil
	})
	h.eventually(podLimit, "the host to be as before the pods", func() error { return same(t, h, idle) })

	h.apply(demoDeployment("web", 2, ""))
	h.waitPods("web", 2)
	h.stop()
	out, err := h.reset()
	must(t, err)
	mustContain(t, "what reset says", out, h.dir)
	h.eventually(podLimit, "the host to be as before the node", func() error { return same(t, h, empty) })
	if _, err := os.Stat(h.dir); !os.IsNotExist(err) {
		t.Errorf("the data directory is still there: %v", err)
	}
}

func take(t *testing.T) hostimage.Image {
	t.Helper()
	image, err := hostimage.Take()
	must(t, err)
	return image
}

// same compares what could be a node's; what else lives on the machine comes and goes.
func same(t *testing.T, h *host, before hostimage.Image) error {
	t.Helper()
	bridge, prefix := network.Names(h.dir)
	if extra := take(t).Since(before, h.dir, h.cgroup, bridge, prefix, "demo", "nodeactor", "netns"); len(extra) > 0 {
		return notYet("there is more than before:\n%s", strings.Join(extra, "\n"))
	}
	return nil
}
