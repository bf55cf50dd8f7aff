package kubelet

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/nodeactor/nodeactor/kubelet/runtime"
)

func httpGet(url string) (string, error) {
	c := http.Client{Timeout: 5 * time.Second}
	resp, err := c.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

func TestPodRunsServesAndGoes(t *testing.T) {
	h := newHost(t, nil)
	begin := time.Now()
	h.create(shell("web", "exec httpd -f -p 8080 -h /www"))
	p := h.running("web")
	t.Logf("ready after %v", time.Since(begin))
	if p.Status.Phase != v1.PodRunning || p.Status.PodIP == "" || p.Status.StartTime == nil || p.Status.QOSClass != v1.PodQOSBestEffort {
		t.Errorf("status: %+v", p.Status)
	}
	var body string
	var err error
	for range 50 {
		if body, err = httpGet(fmt.Sprintf("http://%s:8080/index.html", p.Status.PodIP)); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if body != "hello from the pod\n" || err != nil {
		t.Errorf("GET: %q, %v", body, err)
	}
	h.remove("web", 1)
	t.Log(h.events("web"))
}

func status(p *v1.Pod, container string) *v1.ContainerStatus {
	if p == nil {
		return nil
	}
	for _, list := range [][]v1.ContainerStatus{p.Status.ContainerStatuses, p.Status.InitContainerStatuses} {
		for i := range list {
			if list[i].Name == container {
				return &list[i]
			}
		}
	}
	return nil
}

func TestCrashLoopBacksOffAndKeepsTheLastState(t *testing.T) {
	h := newHost(t, nil)
	h.create(shell("crash", "echo died > /dev/termination-log; exit 3"))
	p := h.wait("crash", "in CrashLoopBackOff", func(p *v1.Pod) bool {
		s := status(p, "main")
		return s != nil && s.State.Waiting != nil && s.State.Waiting.Reason == "CrashLoopBackOff"
	})
	s := status(p, "main")
	last := s.LastTerminationState.Terminated
	if s.RestartCount != 1 || last == nil || last.ExitCode != 3 || last.Reason != "Error" || last.Message != "died\n" || last.ContainerID == "" {
		t.Errorf("restarts %d, last %+v", s.RestartCount, last)
	}
	if p.Status.Phase != v1.PodRunning || isReady(p) {
		t.Errorf("phase %s", p.Status.Phase)
	}
	h.remove("crash", 1)
}

func TestPodOfOneShotContainers(t *testing.T) {
	h := newHost(t, nil)
	for name, c := range map[string]struct {
		script string
		policy v1.RestartPolicy
		phase  v1.PodPhase
		code   int32
		reason string
	}{
		"done":   {"exit 0", v1.RestartPolicyNever, v1.PodSucceeded, 0, "Completed"},
		"failed": {"exit 7", v1.RestartPolicyNever, v1.PodFailed, 7, "Error"},
		"onfail": {"exit 0", v1.RestartPolicyOnFailure, v1.PodSucceeded, 0, "Completed"},
	} {
		p := shell(name, c.script)
		p.Spec.RestartPolicy = c.policy
		h.create(p)
		p = h.wait(name, "over", func(p *v1.Pod) bool { return p.Status.Phase == c.phase })
		s := status(p, "main")
		if s.State.Terminated == nil || s.State.Terminated.ExitCode != c.code || s.State.Terminated.Reason != c.reason {
			t.Errorf("%s: %+v", name, s.State)
		}
		h.remove(name, 0)
	}
}

func TestOOMKilled(t *testing.T) {
	h := newHost(t, nil)
	p := shell("oom", "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}")
	p.Spec.RestartPolicy = v1.RestartPolicyNever
	p.Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceMemory: resource.MustParse("24Mi")}
	h.create(p)
	p = h.wait("oom", "failed", func(p *v1.Pod) bool { return p.Status.Phase == v1.PodFailed })
	if s := status(p, "main").State.Terminated; s.Reason != "OOMKilled" || s.ExitCode != 137 {
		t.Errorf("%+v", s)
	}
}

func TestGraceIsGivenAndEnds(t *testing.T) {
	h := newHost(t, nil)
	h.create(shell("polite", "trap 'exit 0' TERM; while true; do sleep 0.05; done"))
	h.create(shell("stubborn", "trap '' TERM; while true; do sleep 0.05; done"))
	h.running("polite")
	h.running("stubborn")
	begin := time.Now()
	h.remove("polite", 20)
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("a container that ends on SIGTERM took %v", took)
	}
	begin = time.Now()
	h.remove("stubborn", 2)
	if took := time.Since(begin); took < 2*time.Second || took > 12*time.Second {
		t.Errorf("a container that ignores SIGTERM took %v", took)
	}
}

func TestInitContainersAndSidecar(t *testing.T) {
	h := newHost(t, nil)
	p := shell("init", "cat /work/log; test \"$(cat /work/log)\" = 'one side two ' && touch /work/ok && exec sleep 1000")
	always := v1.ContainerRestartPolicyAlways
	mount := []v1.VolumeMount{{Name: "work", MountPath: "/work"}}
	p.Spec.Volumes = []v1.Volume{{Name: "work", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
	step := func(name, script string) v1.Container {
		c := *p.Spec.Containers[0].DeepCopy()
		c.Name, c.Command, c.VolumeMounts = name, []string{"sh", "-c", script}, mount
		return c
	}
	side := step("side", "printf 'side ' >> /work/log; touch /work/up; trap 'exit 0' TERM; while true; do sleep 0.05; done")
	side.RestartPolicy = &always
	side.StartupProbe = &v1.Probe{PeriodSeconds: 1, FailureThreshold: 30, ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"cat", "/work/up"}}}}
	p.Spec.InitContainers = []v1.Container{step("one", "printf 'one ' >> /work/log"), side, step("two", "printf 'two ' >> /work/log")}
	p.Spec.Containers[0].VolumeMounts = mount
	h.create(p)
	p = h.running("init")
	for i, name := range []string{"one", "side", "two"} {
		if s := p.Status.InitContainerStatuses[i]; s.Name != name || !s.Ready {
			t.Errorf("%s: %+v", name, s)
		}
	}
	h.remove("init", 5)
}

func TestFailedInitContainerIsRetriedOrFailsThePod(t *testing.T) {
	h := newHost(t, nil)
	for name, policy := range map[string]v1.RestartPolicy{"retry": v1.RestartPolicyAlways, "never": v1.RestartPolicyNever} {
		p := shell(name, "sleep 1000")
		p.Spec.RestartPolicy = policy
		c := *p.Spec.Containers[0].DeepCopy()
		c.Name, c.Command = "setup", []string{"sh", "-c", "exit 4"}
		p.Spec.InitContainers = []v1.Container{c}
		h.create(p)
	}
	p := h.wait("retry", "retrying", func(p *v1.Pod) bool {
		s := status(p, "setup")
		return s != nil && s.RestartCount >= 1 && s.State.Waiting != nil && s.State.Waiting.Reason == "CrashLoopBackOff"
	})
	if p.Status.Phase != v1.PodPending || status(p, "main").State.Waiting.Reason != "PodInitializing" {
		t.Errorf("%s, %+v", p.Status.Phase, status(p, "main").State)
	}
	h.wait("never", "failed", func(p *v1.Pod) bool { return p.Status.Phase == v1.PodFailed })
}

func TestProbesAndHooks(t *testing.T) {
	h := newHost(t, nil)
	p := shell("probed", "echo ok > /tmp/alive; httpd -p 8080 -h /www; sleep 2; rm /tmp/alive; sleep 1000")
	c := &p.Spec.Containers[0]
	c.Ports = []v1.ContainerPort{{Name: "http", ContainerPort: 8080}}
	c.StartupProbe = &v1.Probe{PeriodSeconds: 1, FailureThreshold: 30, ProbeHandler: v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromString("http")}}}
	c.ReadinessProbe = &v1.Probe{PeriodSeconds: 1, ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: "/started", Port: intstr.FromInt(8080)}}}
	c.LivenessProbe = &v1.Probe{PeriodSeconds: 1, FailureThreshold: 2, ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"cat", "/tmp/alive"}}}}
	c.Lifecycle = &v1.Lifecycle{PostStart: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"sh", "-c", "echo yes > /www/started"}}}}
	h.create(p)
	h.running("probed")
	h.wait("probed", "restarted by its liveness probe", func(p *v1.Pod) bool { return status(p, "main").RestartCount >= 1 })
	h.remove("probed", 0)
}

func TestImageThatCannotBe(t *testing.T) {
	h := newHost(t, nil)
	for name, c := range map[string]struct {
		image  string
		policy v1.PullPolicy
		reason string
	}{
		"never":   {"test.local/absent:1", v1.PullNever, "ErrImageNeverPull"},
		"absent":  {"127.0.0.1:1/absent:1", v1.PullIfNotPresent, "ImagePullBackOff"},
		"invalid": {"UPPER CASE", v1.PullIfNotPresent, "InvalidImageName"},
	} {
		p := shell(name, "true")
		p.Spec.Containers[0].Image, p.Spec.Containers[0].ImagePullPolicy = c.image, c.policy
		h.create(p)
		h.wait(name, c.reason, func(p *v1.Pod) bool {
			s := status(p, "main")
			return s != nil && s.State.Waiting != nil && s.State.Waiting.Reason == c.reason
		})
	}
}

func TestCommandThatCannotRun(t *testing.T) {
	h := newHost(t, nil)
	p := shell("nocmd", "")
	p.Spec.Containers[0].Command = []string{"/no/such/thing"}
	h.create(p)
	p = h.wait("nocmd", "waiting with a start error", func(p *v1.Pod) bool {
		s := status(p, "main")
		return s != nil && s.LastTerminationState.Terminated != nil && s.State.Waiting != nil
	})
	if s := status(p, "main"); s.LastTerminationState.Terminated.Reason != "StartError" || s.LastTerminationState.Terminated.ExitCode != 128 {
		t.Errorf("%+v", s)
	}
	p = shell("noroot", "true")
	yes := true
	p.Spec.Containers[0].SecurityContext = &v1.SecurityContext{RunAsNonRoot: &yes}
	h.create(p)
	h.wait("noroot", "refused", func(p *v1.Pod) bool {
		s := status(p, "main")
		return s != nil && s.State.Waiting != nil && s.State.Waiting.Reason == "CreateContainerConfigError"
	})
}

// TestAdoption ends the kubelet while pods run, and starts it anew: nothing may be restarted, and what ended meanwhile
// is told with its true exit code.
func TestAdoption(t *testing.T) {
	h := newHost(t, nil)
	h.create(shell("stays", "exec sleep 1000"))
	p := shell("ends", "while ! test -e /tmp/x; do sleep 0.05; done; sleep 1; exit 9")
	p.Spec.RestartPolicy = v1.RestartPolicyNever
	h.create(p)
	before := h.running("stays")
	h.running("ends")
	ends := status(h.get("ends"), "main").ContainerID[len("nodeactor://"):]
	if code, err := h.engine.Exec(t.Context(), ends, runtime.ExecSpec{Args: []string{"touch", "/tmp/x"}}); code != 0 || err != nil {
		t.Fatal(code, err)
	}
	h.stop()
	time.Sleep(1500 * time.Millisecond)
	h.open()
	h.start()
	p = h.wait("ends", "failed", func(p *v1.Pod) bool { return p.Status.Phase == v1.PodFailed })
	if s := status(p, "main").State.Terminated; s.ExitCode != 9 {
		t.Errorf("%+v", s)
	}
	time.Sleep(1500 * time.Millisecond)
	after := h.get("stays")
	if a, b := status(before, "main"), status(after, "main"); a.ContainerID != b.ContainerID || b.RestartCount != 0 || !isReady(after) {
		t.Errorf("before %+v\nafter %+v", a, b)
	}
	if before.Status.PodIP != after.Status.PodIP {
		t.Errorf("address %s became %s", before.Status.PodIP, after.Status.PodIP)
	}
	h.remove("stays", 0)
	h.remove("ends", 0)
}

func TestNodeRegistersAndRests(t *testing.T) {
	h := newHost(t, nil)
	h.create(shell("idle", "exec sleep 1000"))
	h.running("idle")
	end := time.Now().Add(patience)
	var ready bool
	for !ready && time.Now().Before(end) {
		if n, err := h.api.CoreV1().Nodes().Get(t.Context(), testNode, metav1.GetOptions{}); err == nil {
			for _, c := range n.Status.Conditions {
				ready = ready || c.Type == v1.NodeReady && c.Status == v1.ConditionTrue
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	if !ready {
		t.Fatal("the node did not become ready")
	}
	time.Sleep(2 * time.Second)
	h.api.ClearActions()
	time.Sleep(3 * time.Second)
	for _, a := range h.api.Actions() {
		if v := a.GetVerb(); v != "get" && v != "list" && v != "watch" {
			t.Errorf("at rest: %s %s", v, a.GetResource().Resource)
		}
	}
}

func TestLogsAreRotated(t *testing.T) {
	h := newHost(t, nil)
	h.create(shell("talks", "while true; do echo some words; sleep 0.01; done"))
	p := h.running("talks")
	id := strings.TrimPrefix(status(p, "main").ContainerID, "nodeactor://")
	c, err := h.engine.Container(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for range maxLogFiles + 1 {
		h.eventually("the log grows", func() bool { i, err := os.Stat(c.LogPath); return err == nil && i.Size() > 200 })
		if err := rotate(t.Context(), h.engine, c, 200); err != nil {
			t.Fatal(err)
		}
	}
	files, _ := filepath.Glob(c.LogPath + "*")
	if len(files) != maxLogFiles {
		t.Errorf("kept %v", files)
	}
	h.remove("talks", 0)
}
