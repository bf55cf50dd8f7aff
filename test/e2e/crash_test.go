package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// containerPID finds the process of the one container of p by its cgroup.
func (h *host) containerPID(p corev1.Pod) int {
	h.t.Helper()
	id := strings.TrimPrefix(p.Status.ContainerStatuses[0].ContainerID, "nodeactor://")
	procs, _ := filepath.Glob("/proc/[0-9]*/cgroup")
	for _, f := range procs {
		b, err := os.ReadFile(f)
		if err != nil || !strings.Contains(string(b), id) {
			continue
		}
		if comm, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "comm")); strings.TrimSpace(string(comm)) == "demo" {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			return pid
		}
	}
	h.t.Fatalf("no process of container %s", id)
	return 0
}

// TestKilledContainerRestarts: the container comes back, the restart is counted and told.
func TestKilledContainerRestarts(t *testing.T) {
	h := newHost(t, 1)
	h.start()
	h.importDemo()
	h.apply(demoDeployment("web", 1, ""))
	p := h.waitPods("web", 1)[0]
	must(t, syscall.Kill(h.containerPID(p), syscall.SIGKILL))
	h.eventually(podLimit, "the restart", func() error {
		now := h.pods("web")[0]
		if now.UID != p.UID {
			t.Fatalf("the pod was replaced instead of its container restarted")
		}
		s := now.Status.ContainerStatuses[0]
		if s.RestartCount != 1 || s.LastTerminationState.Terminated == nil || s.State.Running == nil {
			return notYet("status %+v", s)
		}
		if code := s.LastTerminationState.Terminated.ExitCode; code != 137 {
			t.Fatalf("exit code %d, want 137", code)
		}
		return nil
	})
	h.waitPods("web", 1)
	mustContain(t, "events", h.kubectl("get", "events", "--field-selector=involvedObject.name="+p.Name), "Started")
}

// TestDaemonKilledContainersLive: a crash of the daemon stops nothing; its next start
// takes everything over and knows what ended meanwhile.
func TestDaemonKilledContainersLive(t *testing.T) {
	h := newHost(t, 2)
	h.start()
	h.importDemo()
	h.apply(demoDeployment("web", 2, ""))
	h.apply(onePod("short", `command: ["/demo", "sleep", "8s"]`, "Never"))
	h.apply(onePod("coded", `command: ["/demo", "sleep", "8s", "3"]`, "Never"))
	before := h.waitPods("web", 2)
	h.waitPhase("short", corev1.PodRunning)
	h.waitPhase("coded", corev1.PodRunning)
	pids, uids := map[string]int{}, map[string]types.UID{}
	for _, p := range before {
		pids[p.Name], uids[p.Name] = h.containerPID(p), p.UID
	}
	mustContain(t, "the log of the first start", h.tail(1000), "kind=first_boot")

	h.kill()
	for _, p := range before {
		if _, err := fetch(p.Status.PodIP, "/"); err != nil {
			t.Errorf("pod %s stopped with the daemon: %v", p.Name, err)
		}
	}
	time.Sleep(9 * time.Second) // the two short pods end while nobody watches
	h.start()

	for _, p := range h.waitPods("web", 2) {
		if s := p.Status.ContainerStatuses[0]; s.RestartCount != 0 {
			t.Errorf("pod %s was restarted %d times", p.Name, s.RestartCount)
		}
		if got := h.containerPID(p); got != pids[p.Name] || p.UID != uids[p.Name] {
			t.Errorf("pod %s: process %d became %d, UID %s became %s", p.Name, pids[p.Name], got, uids[p.Name], p.UID)
		}
	}
	mustContain(t, "the log of the second start", h.tail(1000), "kind=resume")
	h.waitPhase("short", corev1.PodSucceeded)
	coded := h.waitPhase("coded", corev1.PodFailed)
	if code := coded.Status.ContainerStatuses[0].State.Terminated.ExitCode; code != 3 {
		t.Errorf("exit code %d was recorded, want 3", code)
	}
}

// onePod is a bare pod of the demo image.
func onePod(name, container, restartPolicy string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {app: %[1]s}}
spec:
  restartPolicy: %[3]s
  terminationGracePeriodSeconds: 2
  containers:
  - name: main
    image: nodeactor.io/demo:v1
    imagePullPolicy: IfNotPresent
    %[2]s
`, name, container, restartPolicy)
}

// waitPhase waits until the pod reaches a phase and returns it.
func (h *host) waitPhase(name string, phase corev1.PodPhase) corev1.Pod {
	h.t.Helper()
	var p corev1.Pod
	h.eventually(podLimit, fmt.Sprintf("pod %s to be %s", name, phase), func() error {
		if err := h.get(&p, "pod", name); err != nil {
			return err
		}
		if p.Status.Phase != phase {
			return notYet("it is %s %+v", p.Status.Phase, p.Status.ContainerStatuses)
		}
		return nil
	})
	return p
}
