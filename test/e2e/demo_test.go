package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

const demoImage = "nodeactor.io/demo:v1"

// demoDeployment is a Deployment of the demo web server.
func demoDeployment(name string, replicas int, extra string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, labels: {app: %[1]s}}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 5
      containers:
      - name: web
        image: nodeactor.io/demo:v1
        imagePullPolicy: IfNotPresent
        ports: [{name: http, containerPort: 8080}]
        readinessProbe: {httpGet: {path: /healthz, port: http}, periodSeconds: 1}
        resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {memory: 64Mi}}
%[3]s`, name, replicas, extra)
}

// importDemo loads the image that the build made.
func (h *host) importDemo() {
	h.t.Helper()
	_, err := h.run(podLimit, nil, "image", "import", "--data-dir", h.dir, h.bin+"/demo-image.tar")
	must(h.t, err)
}

// pods lists the pods with a label.
func (h *host) pods(app string) []corev1.Pod {
	h.t.Helper()
	var l corev1.PodList
	must(h.t, h.get(&l, "pods", "-l", "app="+app))
	return l.Items
}

// waitPods waits until exactly n pods of app exist, all Ready with an address.
func (h *host) waitPods(app string, n int) []corev1.Pod {
	h.t.Helper()
	var pods []corev1.Pod
	h.eventually(podLimit, fmt.Sprintf("%d ready pods of %s", n, app), func() error {
		pods = h.pods(app)
		if len(pods) != n {
			return notYet("there are %d pods", len(pods))
		}
		for i := range pods {
			if !isReady(&pods[i]) || pods[i].Status.PodIP == "" {
				return notYet("pod %s is %s %+v", pods[i].Name, pods[i].Status.Phase, pods[i].Status.ContainerStatuses)
			}
		}
		return nil
	})
	return pods
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil
		}
	}
	return false
}

// fetch gets a path of a pod's web server from the host.
func fetch(ip, path string) (string, error) {
	c := http.Client{Timeout: 3 * time.Second}
	resp, err := c.Get("http://" + ip + ":8080" + path)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %s", resp.StatusCode, b)
	}
	return string(b), err
}

// TestDeploymentTheWholeWay is the main job: a Deployment becomes running containers that
// answer, and every everyday kubectl verb works on it.
func TestDeploymentTheWholeWay(t *testing.T) {
	h := newHost(t, 0)
	h.start()
	h.importDemo()
	h.apply(demoDeployment("web", 3, ""))
	pods := h.waitPods("web", 3)

	t.Run("one ReplicaSet", func(t *testing.T) {
		var l appsv1.ReplicaSetList
		must(t, h.get(&l, "rs", "-l", "app=web"))
		if len(l.Items) != 1 || l.Items[0].Status.ReadyReplicas != 3 {
			t.Fatalf("want one ReplicaSet with 3 ready replicas, got %d: %+v", len(l.Items), l.Items)
		}
	})
	t.Run("started once", func(t *testing.T) { startedOnce(t, h, pods) })
	t.Run("reachable from the host", func(t *testing.T) {
		for _, p := range pods {
			body, err := fetch(p.Status.PodIP, "/")
			must(t, err)
			if !strings.Contains(body, p.Name) {
				t.Errorf("pod %s answered %q", p.Name, body)
			}
		}
	})
	t.Run("reachable from each other", func(t *testing.T) {
		for _, p := range pods[1:] {
			out := h.kubectl("exec", pods[0].Name, "--", "/demo", "get", "http://"+p.Status.PodIP+":8080/")
			if !strings.Contains(out, p.Name) {
				t.Errorf("pod %s answered %q", p.Name, out)
			}
		}
	})
	t.Run("wide, describe, explain", func(t *testing.T) { lookingAround(t, h, pods) })
	t.Run("logs", func(t *testing.T) { followLogs(t, h, pods[0]) })
	t.Run("exec", func(t *testing.T) { execs(t, h, pods[0].Name) })
	t.Run("scale", func(t *testing.T) {
		h.kubectl("scale", "deployment/web", "--replicas=1")
		h.waitPods("web", 1)
		h.kubectl("scale", "deployment/web", "--replicas=2")
		h.waitPods("web", 2)
	})
	t.Run("rollout and undo", func(t *testing.T) { rollout(t, h) })
	t.Run("patch and server-side apply", func(t *testing.T) { patching(t, h) })
	t.Run("authorization", func(t *testing.T) { authorization(t, h) })
	t.Run("custom resources", func(t *testing.T) { customResources(t, h) })
	t.Run("delete", func(t *testing.T) {
		h.kubectl("delete", "deployment", "web", "--wait=true", "--timeout=60s")
		h.eventually(podLimit, "the pods to be gone", func() error {
			if n := len(h.pods("web")); n > 0 {
				return notYet("%d pods are left", n)
			}
			return nil
		})
	})
}
