package kubelet

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

func TestSecurityContexts(t *testing.T) {
	h := newHost(t, nil)
	yes, no := true, false
	p := shell("tight", "exec sleep 1000")
	p.Spec.ShareProcessNamespace = &yes
	p.Spec.Hostname = "named"
	p.Spec.Containers[0].SecurityContext = &v1.SecurityContext{ReadOnlyRootFilesystem: &yes, AllowPrivilegeEscalation: &no,
		Capabilities: &v1.Capabilities{Drop: []v1.Capability{"ALL"}, Add: []v1.Capability{"NET_BIND_SERVICE"}}}
	h.create(p)
	p = shell("host", "httpd -p 127.0.0.1:18080 -h /www; exec sleep 1000")
	p.Spec.HostNetwork = true
	h.create(p)
	p = shell("free", "exec sleep 1000")
	p.Spec.Containers[0].SecurityContext = &v1.SecurityContext{Privileged: &yes}
	h.create(p)
	h.running("tight")
	h.running("free")
	hostPod := h.running("host")
	for command, want := range map[string]string{
		"touch /x 2>/dev/null || echo read-only": "read-only",
		"grep NoNewPrivs /proc/self/status":      "NoNewPrivs:\t1",
		"grep CapEff /proc/self/status":          "CapEff:\t0000000000000400",
		"hostname":                               "named",
	} {
		if got := strings.TrimSpace(h.run("tight", "sh", "-c", command)); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	if got := h.run("tight", "cat", "/proc/1/comm"); strings.TrimSpace(got) == "sleep" {
		t.Errorf("with a shared process namespace pid 1 is the container's own: %s", got)
	}
	if got := h.run("free", "grep", "CapEff", "/proc/self/status"); strings.Contains(got, "0000000000000400") || strings.Contains(got, "00000000a80425fb") {
		t.Errorf("privileged: %s", got)
	}
	if hostPod.Status.PodIP != hostPod.Status.HostIP {
		t.Errorf("host network: %s, %s", hostPod.Status.PodIP, hostPod.Status.HostIP)
	}
	if body, err := httpGet("http://127.0.0.1:18080/index.html"); body != "hello from the pod\n" || err != nil {
		t.Errorf("host network: %q, %v", body, err)
	}
	for _, name := range []string{"tight", "host", "free"} {
		h.mark(name, 0)
	}
	for _, name := range []string{"tight", "host", "free"} {
		h.wait(name, "gone", func(p *v1.Pod) bool { return p == nil })
	}
	records, err := h.engine.List(t.Context())
	if err != nil || len(records) != 0 {
		t.Errorf("left: %v %v", records, err)
	}
}

// TestRestartsOfTheKubeletAreNotSeen starts the kubelet again and again: not one status is written.
func TestRestartsOfTheKubeletAreNotSeen(t *testing.T) {
	h := newHost(t, nil)
	h.create(shell("quiet", "exec sleep 1000"))
	h.running("quiet")
	time.Sleep(time.Second)
	h.api.ClearActions()
	for range 5 {
		h.stop()
		h.open()
		h.start()
		time.Sleep(500 * time.Millisecond)
	}
	for _, a := range h.api.Actions() {
		if a.GetResource().Resource == "pods" && a.GetVerb() != "list" && a.GetVerb() != "watch" && a.GetVerb() != "get" {
			t.Errorf("written: %+v", a)
		}
	}
	if s := status(h.get("quiet"), "main"); s.RestartCount != 0 || !isReady(h.get("quiet")) {
		t.Errorf("%+v", s)
	}
	h.remove("quiet", 0)
}
