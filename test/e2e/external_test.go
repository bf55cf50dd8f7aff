package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodeactor/nodeactor/test/etcdserver"
)

// TestExternalStore runs a node over an etcd elsewhere: it waits for it, works on it, outlives its absence and comes back with it.
func TestExternalStore(t *testing.T) {
	server := etcdserver.Prepare(t)
	h := newHost(t, 22)
	h.etcd = "off"
	files := []string{"--store-ca-file=" + server.CAFile, "--store-cert-file=" + server.CertFile, "--store-key-file=" + server.KeyFile}
	flags := append([]string{"--store-endpoints=" + server.Endpoint}, files...)
	h.refused(t, []string{"storeEndpoints", "https://"}, h.args(append(files, "--store-endpoints=http://127.0.0.1:1")...)...)
	h.refused(t, []string{"storeQuota", "elsewhere"}, h.args(append(flags, "--store-quota=1Gi")...)...)
	h.refused(t, []string{"without storeEndpoints"}, h.args(files[0])...)
	h.refused(t, []string{server.StrangeKeyFile}, h.args("--store-endpoints="+server.Endpoint, files[0], files[1], "--store-key-file="+server.StrangeKeyFile)...)

	h.launch(flags...)
	h.eventually(startLimit, "the node to say what it waits for", func() error {
		out, err := h.run(10*time.Second, nil, "status", "--data-dir", h.dir)
		if err == nil || !strings.Contains(out, "waiting for the store: no endpoint of the store answers") || !strings.Contains(out, server.Endpoint) {
			return notYet("status says %v: %s", err, out)
		}
		return nil
	})
	if _, err := h.try("get", "--raw", "/readyz"); err == nil || !strings.Contains(err.Error(), "waiting for the store") {
		t.Fatalf("readyz while waiting: %v", err)
	}
	if _, err := h.try("get", "--raw", "/api/v1/namespaces/default/pods"); err == nil || !strings.Contains(err.Error(), "waiting for the store") {
		t.Fatalf("a read while waiting: %v", err)
	}
	server.Start()
	h.waitReady()
	h.importDemo()
	h.apply(demoDeployment("web", 1, ""))
	before := h.onlyPod("app=web")
	if out, err := h.run(10*time.Second, nil, "status", "--data-dir", h.dir); err != nil || !strings.Contains(out, "etcd elsewhere "+server.Endpoint) {
		t.Fatalf("status: %v\n%s", err, out)
	}

	server.Stop()
	h.eventually(podLimit, "a consistent read to be refused", func() error {
		if _, err := h.try("get", "--raw", "/api/v1/namespaces/default/pods"); err == nil || !strings.Contains(err.Error(), "the store cannot be asked") {
			return notYet("a consistent read: %v", err)
		}
		return nil
	})
	if out := h.kubectl("get", "--raw", "/api/v1/namespaces/default/pods?resourceVersion=0"); !strings.Contains(out, before.Name) {
		t.Fatalf("a read from memory: %s", out)
	}
	if _, err := h.run(20*time.Second, nil, "kubectl", "create", "configmap", "away", "--validate=false"); err == nil {
		t.Fatal("written with no store")
	}
	server.Start()
	h.eventually(podLimit, "writes to go on", func() error {
		_, err := h.try("create", "configmap", "back")
		return err
	})
	after := h.onlyPod("app=web")
	if after.UID != before.UID || after.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Fatalf("the pod did not outlive the absence: %s, then %s with %+v", before.UID, after.UID, after.Status.ContainerStatuses)
	}
	h.stop()
	h.refused(t, []string{server.Endpoint, "--store-endpoints"}, h.args()...)
	h.start(flags...)
	if again := h.onlyPod("app=web"); again.UID != before.UID {
		t.Fatalf("another pod after a restart: %s, then %s", before.UID, again.UID)
	}
}

// onlyPod waits for the one pod of a selector to run.
func (h *host) onlyPod(selector string) (pod corev1.Pod) {
	h.t.Helper()
	h.eventually(podLimit, "one running pod of "+selector, func() error {
		var list corev1.PodList
		if err := h.get(&list, "pods", "-l", selector); err != nil {
			return err
		}
		if len(list.Items) != 1 || list.Items[0].Status.Phase != corev1.PodRunning {
			return fmt.Errorf("%w: %d pods", errNot, len(list.Items))
		}
		pod = list.Items[0]
		return nil
	})
	return pod
}
