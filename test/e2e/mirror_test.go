package e2e

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// followWithin bounds how long the second operator may take to lead after the first one was killed: its Lease is for 6 s.
const followWithin = 30 * time.Second

const mirrorObjects = `
apiVersion: v1
kind: Namespace
metadata: {name: web}
---
apiVersion: v1
kind: Namespace
metadata: {name: batch}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: default}
data: {colour: blue}
---
apiVersion: example.com/v1
kind: Mirror
metadata: {name: settings, namespace: default}
spec: {configMap: settings, namespaces: [web, batch]}
`

// TestOperatorOnClientGo runs examples/mirror, which knows Kubernetes alone, against a node: informers, a work queue, a custom resource
// with a status and finalizers, and a leader elected by a Lease, who is killed.
func TestOperatorOnClientGo(t *testing.T) {
	h := newHost(t, 31)
	program := filepath.Join(t.TempDir(), "mirror")
	build(t, program, "./examples/mirror")
	h.start()
	crd, err := os.ReadFile("../../examples/mirror/crd.yaml")
	must(t, err)
	h.apply(string(crd))
	h.kubectl("wait", "--for=condition=Established", "crd/mirrors.example.com", "--timeout=30s")
	h.apply(mirrorObjects)

	first := h.mirrorOperator(program, "first")
	h.leads("first")
	h.mirrorOperator(program, "second")
	h.copies("blue", "web", "batch")
	h.kubectl("wait", "--for=condition=Ready", "mirror/settings", "--timeout=30s")

	// A copy that somebody removes comes back, and one that is no longer wanted goes.
	h.kubectl("delete", "configmap", "settings", "-n", "web")
	h.copies("blue", "web", "batch")
	h.kubectl("patch", "mirror", "settings", "--type=merge", "-p", `{"spec":{"namespaces":["web"]}}`)
	h.copies("blue", "web")

	// The leader dies: the other one follows and does what has changed meanwhile.
	must(t, first.Process.Kill())
	h.kubectl("patch", "configmap", "settings", "--type=merge", "-p", `{"data":{"colour":"green"}}`)
	h.leads("second")
	h.copies("green", "web")

	h.kubectl("delete", "mirror", "settings", "--timeout=30s")
	h.copies("")
	if out := h.kubectl("get", "configmap", "settings", "-o", "jsonpath={.data.colour}"); out != "green" {
		t.Errorf("the original says %q after its Mirror was deleted", out)
	}
}

// mirrorOperator starts one of the operators; it ends with the test.
func (h *host) mirrorOperator(program, id string) *exec.Cmd {
	h.t.Helper()
	log, err := os.CreateTemp(h.t.TempDir(), id+"-*.log")
	must(h.t, err)
	cmd := exec.Command(program, "--kubeconfig", filepath.Join(h.dir, "admin.kubeconfig"), "--id", id)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(h.t, cmd.Start())
	h.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if _, err := log.Seek(0, io.SeekStart); err == nil && h.t.Failed() {
			said, _ := io.ReadAll(log)
			h.t.Logf("what operator %s said:\n%s", id, said)
		}
		log.Close()
	})
	return cmd
}

// leads waits until the Lease names that operator.
func (h *host) leads(id string) {
	h.t.Helper()
	h.eventually(followWithin, id+" to lead", func() error {
		holder, err := h.try("get", "lease", "mirror-operator", "-o", "jsonpath={.spec.holderIdentity}")
		if err == nil && holder != id {
			return notYet("%q leads", holder)
		}
		return err
	})
}

// copies waits until there are copies of that colour in exactly these namespaces.
func (h *host) copies(colour string, namespaces ...string) {
	h.t.Helper()
	var want []string
	for _, namespace := range namespaces {
		want = append(want, fmt.Sprintf("%s=%s", namespace, colour))
	}
	h.eventually(followWithin, "copies "+strings.Join(want, " "), func() error {
		have, err := h.try("get", "configmaps", "-A", "-l", "example.com/copy-of=default.settings",
			"-o", `jsonpath={range .items[*]}{.metadata.namespace}={.data.colour}{"\n"}{end}`)
		if err != nil {
			return err
		}
		got := strings.Fields(have)
		for _, one := range want {
			if !strings.Contains(" "+strings.Join(got, " ")+" ", " "+one+" ") {
				return notYet("there are %v", got)
			}
		}
		if len(got) != len(want) {
			return notYet("there are %v", got)
		}
		return nil
	})
}
