package e2e

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodeactor/nodeactor/test/loopback"
)

// refused runs the daemon with arguments it must refuse, in one line.
func (h *host) refused(t *testing.T, want []string, args ...string) {
	t.Helper()
	out, err := h.run(20*time.Second, nil, args...)
	if err == nil {
		t.Fatalf("accepted: %q", out)
	}
	if !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("want exit code 1: %v", err)
	}
	if strings.Count(strings.TrimSpace(out), "\n") != 0 {
		t.Errorf("want one line, got:\n%s", out)
	}
	mustContain(t, "message", out, want...)
}

func TestBadInputIsRefused(t *testing.T) {
	h := newHost(t, 5)
	file := filepath.Join(h.dir, "c.yaml")
	must(t, os.WriteFile(file, []byte("dataDirr: /x\n"), 0o600))
	h.refused(t, []string{"dataDirr", file}, "run", "--config", file)
	h.refused(t, []string{"apiAddr", "nonsense"}, "run", "--data-dir", h.dir, "--api-addr", "nonsense")
	h.refused(t, []string{"nodeName", "--node-name"}, "run", "--data-dir", h.dir, "--node-name", "Not_A_Name")
	h.refused(t, []string{"overlap"}, "run", "--data-dir", h.dir, "--pod-cidr", "10.96.1.0/24")
	must(t, os.WriteFile(filepath.Join(h.dir, "plain"), nil, 0o600))
	h.refused(t, []string{filepath.Join(h.dir, "plain"), "--data-dir"}, "run", "--data-dir", filepath.Join(h.dir, "plain"))
	h.refused(t, []string{"/proc/nodeactor", "--data-dir"}, "run", "--data-dir", "/proc/nodeactor")

	h.start()
	h.refused(t, []string{h.dir, "in use", "pid"}, h.args()...)
	h.refused(t, []string{"cgroup root " + h.cgroup, "in use", h.dir, "--cgroup-root"}, "run", "--data-dir", t.TempDir(), "--cgroup-root", h.cgroup, "--api-addr", loopback.Free(t))
	h.refused(t, []string{"no/node/here", "nodeactor run"}, "kubectl", "--data-dir", "/no/node/here", "get", "pods")
	h.importDemo()
	t.Run("invalid manifest", func(t *testing.T) {
		_, err := h.run(podLimit, []byte(strings.Replace(demoDeployment("web", 1, ""), "replicas: 1", "replicas: -1", 1)), "kubectl", "apply", "-f", "-")
		if err == nil || !strings.Contains(err.Error(), "spec.replicas: Invalid value: -1: must be greater than or equal to 0") {
			t.Errorf("want upstream's message, got %v", err)
		}
	})
	t.Run("unknown image", func(t *testing.T) {
		h.apply(strings.Replace(onePod("noimage", "", "Always"), demoImage, "127.0.0.1:1/no/such:image", 1))
		h.eventually(podLimit, "ImagePullBackOff", func() error { return h.waiting("noimage", "ImagePullBackOff", "ErrImagePull") })
		mustContain(t, "describe", h.kubectl("describe", "pod", "noimage"), "127.0.0.1:1", "Failed")
	})
	t.Run("missing command", func(t *testing.T) {
		h.apply(onePod("nocommand", `command: ["/no/such/file"]`, "Always"))
		h.eventually(podLimit, "a start error", func() error {
			out, err := h.try("describe", "pod", "nocommand")
			if err == nil && !strings.Contains(out, "/no/such/file\": stat") {
				return notYet("%s", out)
			}
			return err
		})
	})
	t.Run("more than the machine has", func(t *testing.T) {
		h.apply(onePod("huge", `resources: {requests: {cpu: "1000"}}`, "Always"))
		h.eventually(podLimit, "Unschedulable", func() error {
			var p corev1.Pod
			if err := h.get(&p, "pod", "huge"); err != nil {
				return err
			}
			for _, c := range p.Status.Conditions {
				if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable && strings.Contains(c.Message, "0/1 nodes are available: 1 Insufficient cpu") {
					return nil
				}
			}
			return notYet("conditions %+v", p.Status.Conditions)
		})
		mustContain(t, "events", h.kubectl("get", "events"), "FailedScheduling")
	})
}

// waiting checks that the pod's container waits for one of the reasons.
func (h *host) waiting(pod string, reasons ...string) error {
	var p corev1.Pod
	if err := h.get(&p, "pod", pod); err != nil {
		return err
	}
	for _, s := range p.Status.ContainerStatuses {
		for _, r := range reasons {
			if s.State.Waiting != nil && s.State.Waiting.Reason == r {
				return nil
			}
		}
	}
	return notYet("statuses %+v", p.Status.ContainerStatuses)
}

// TestTakenPort: a held API port is reported once with its holder and served within a
// second or so of its release.
func TestTakenPort(t *testing.T) {
	h := newHost(t, 6)
	l, err := net.Listen("tcp", h.api)
	must(t, err)
	h.launch()
	h.eventually(startLimit, "the log to name the holder", func() error {
		if log := h.tail(200); !strings.Contains(log, "e2e.test") {
			return notYet("%s", log)
		}
		return nil
	})
	time.Sleep(4 * time.Second)
	if n := strings.Count(h.tail(1000), "e2e.test"); n != 1 {
		t.Errorf("the taken port was reported %d times, want once:\n%s", n, h.tail(50))
	}
	if out, err := h.run(podLimit, nil, "status", "--data-dir", h.dir); err == nil || !strings.Contains(out, "[-]api/listeners/listener") {
		t.Errorf("status does not name the listener: %v %s", err, out)
	}
	must(t, l.Close())
	h.eventually(5*time.Second, "the API to answer after the port was freed", func() error {
		_, err := h.try("get", "--raw", "/readyz")
		return err
	})
	h.waitReady()
}
