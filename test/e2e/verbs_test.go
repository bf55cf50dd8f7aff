package e2e

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

func mustContain(t *testing.T, what, out string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(out, p) {
			t.Errorf("%s lacks %q:\n%s", what, p, out)
		}
	}
}

func lookingAround(t *testing.T, h *host, pods []corev1.Pod) {
	mustContain(t, "get -o wide", h.kubectl("get", "pods", "-o", "wide"), "READY", "NODE", "host-a", pods[0].Status.PodIP, "1/1")
	mustContain(t, "get deployment", h.kubectl("get", "deployment", "web"), "UP-TO-DATE", "3/3")
	mustContain(t, "describe deployment", h.kubectl("describe", "deployment", "web"), "ScalingReplicaSet", "3 desired | 3 updated | 3 total | 3 available")
	mustContain(t, "describe pod", h.kubectl("describe", "pod", pods[0].Name), "Scheduled", "Started", "nodeactor.io/demo:v1", "kube-api-access")
	mustContain(t, "describe node", h.kubectl("describe", "node", "host-a"), "KubeletReady", "Allocated resources")
	mustContain(t, "explain", h.kubectl("explain", "deployment.spec.strategy.rollingUpdate"), "maxSurge", "maxUnavailable")
	mustContain(t, "api-resources", h.kubectl("api-resources", "-o", "wide"), "deployments", "deploy", "cronjobs", "customresourcedefinitions", "endpointslices")
	mustContain(t, "get all", h.kubectl("get", "all", "-n", "default"), "service/kubernetes", "deployment.apps/web")
}

// followLogs proves that lines which appear after `logs -f` began arrive.
func followLogs(t *testing.T, h *host, p corev1.Pod) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, filepath.Join(h.bin, "nodeactor"), "kubectl", "logs", "-f", p.Name)
	c.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(h.dir, "admin.kubeconfig"))
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	defer func() { cancel(); _ = c.Wait() }()
	time.Sleep(time.Second)
	_, err = fetch(p.Status.PodIP, "/follow-me")
	must(t, err)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "/follow-me") {
			mustContain(t, "logs --tail", h.kubectl("logs", p.Name, "--tail=50", "--timestamps"), "/follow-me", "T")
			return
		}
	}
	t.Errorf("logs -f ended without the line: %v", lines.Err())
}

func execs(t *testing.T, h *host, pod string) {
	mustContain(t, "exec", h.kubectl("exec", pod, "--", "/demo", "env"), "KUBERNETES_SERVICE_HOST=10.96.0.1")
	if out, err := h.try("exec", pod, "--", "/demo", "exit", "7"); err == nil || !strings.Contains(err.Error(), "7") {
		t.Errorf("exec of a failing command: %v %q", err, out)
	}
	if out, err := h.try("exec", pod, "--", "/no-such-file"); err == nil {
		t.Errorf("exec of a missing file succeeded: %q", out)
	}
	// script gives kubectl a real terminal, so that -t is granted.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, "script", "-qec", filepath.Join(h.bin, "nodeactor")+" kubectl exec -it "+pod+" -- /demo tty", "/dev/null")
	c.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(h.dir, "admin.kubeconfig"))
	out, err := c.CombinedOutput()
	must(t, err)
	mustContain(t, "exec -it", string(out), "tty: yes")
}

func rollout(t *testing.T, h *host) {
	h.kubectl("set", "image", "deployment/web", "web=nodeactor.io/demo:v2")
	h.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
	for _, p := range h.waitPods("web", 2) {
		if got := p.Spec.Containers[0].Image; got != "nodeactor.io/demo:v2" {
			t.Errorf("pod %s runs %s", p.Name, got)
		}
	}
	mustContain(t, "rollout history", h.kubectl("rollout", "history", "deployment/web"), "1", "2")
	h.kubectl("rollout", "undo", "deployment/web")
	h.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
	for _, p := range h.waitPods("web", 2) {
		if got := p.Spec.Containers[0].Image; got != demoImage {
			t.Errorf("after undo pod %s runs %s", p.Name, got)
		}
	}
	var l appsv1.ReplicaSetList
	must(t, h.get(&l, "rs", "-l", "app=web"))
	if len(l.Items) != 2 {
		t.Errorf("want the 2 ReplicaSets of the two templates, got %d", len(l.Items))
	}
}

func patching(t *testing.T, h *host) {
	h.kubectl("patch", "deployment", "web", "--type=strategic", "-p", `{"spec":{"template":{"spec":{"containers":[{"name":"web","env":[{"name":"MESSAGE","value":"patched"}]}]}}}}`)
	h.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
	for _, p := range h.waitPods("web", 2) {
		body, err := fetch(p.Status.PodIP, "/")
		must(t, err)
		mustContain(t, "answer", body, "patched")
	}
	cm := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ssa}\ndata: {color: %s}\n"
	h.apply(strings.ReplaceAll(cm, "%s", "red"), "--server-side", "--field-manager=one")
	_, err := h.run(podLimit, []byte(strings.ReplaceAll(cm, "%s", "blue")), "kubectl", "apply", "--server-side", "--field-manager=two", "-f", "-")
	if err == nil || !strings.Contains(err.Error(), `conflict with "one"`) {
		t.Errorf("want a conflict with manager one, got %v", err)
	}
	h.apply(strings.ReplaceAll(cm, "%s", "blue"), "--server-side", "--field-manager=two", "--force-conflicts")
	mustContain(t, "forced value", h.kubectl("get", "cm", "ssa", "-o", "jsonpath={.data.color}"), "blue")
}

func authorization(t *testing.T, h *host) {
	mustContain(t, "can-i", h.kubectl("auth", "can-i", "create", "deployments"), "yes")
	out, err := h.try("auth", "can-i", "list", "secrets", "--as=system:serviceaccount:default:default")
	if err == nil || !strings.HasPrefix(out, "no") {
		t.Errorf("the default service account may list secrets: %q %v", out, err)
	}
	h.kubectl("create", "rolebinding", "viewer", "--clusterrole=view", "--serviceaccount=default:default")
	mustContain(t, "can-i after binding", h.kubectl("auth", "can-i", "list", "pods", "--as=system:serviceaccount:default:default"), "yes")
}

const widgetCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wg]}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations:
            - rule: self.min <= self.max
              message: min must not exceed max
            properties:
              min: {type: integer}
              max: {type: integer}
              size: {type: string, default: small}
`

func customResources(t *testing.T, h *host) {
	h.apply(widgetCRD)
	h.kubectl("wait", "--for=condition=Established", "crd/widgets.example.org", "--timeout=30s")
	widget := "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: w}\nspec: {min: %s, max: 5}\n"
	_, err := h.run(podLimit, []byte(strings.ReplaceAll(widget, "%s", "9")), "kubectl", "apply", "-f", "-")
	if err == nil || !strings.Contains(err.Error(), "min must not exceed max") {
		t.Errorf("the CEL rule did not refuse: %v", err)
	}
	h.apply(strings.ReplaceAll(widget, "%s", "1"))
	mustContain(t, "defaulted", h.kubectl("get", "wg", "w", "-o", "jsonpath={.spec.size}"), "small")
	mustContain(t, "explain", h.kubectl("explain", "widgets.spec"), "size")
	h.kubectl("delete", "crd", "widgets.example.org", "--timeout=30s")
}
