package e2e

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// damageFile writes noise over a part of a file.
func damageFile(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	defer f.Close()
	noise, err := os.Open("/dev/urandom")
	must(t, err)
	defer noise.Close()
	_, err = f.Seek(at, io.SeekStart)
	must(t, err)
	_, err = io.CopyN(f, noise, 200<<10)
	must(t, err)
}

// damageStore damages the log and the database of a node that is stopped, and returns the file that is named for it.
func (h *host) damageStore() string {
	h.t.Helper()
	logs, err := filepath.Glob(filepath.Join(h.dir, "store/member/wal/*.wal"))
	if err != nil || len(logs) == 0 {
		h.t.Fatalf("the store has no log: %v", err)
	}
	damageFile(h.t, logs[0], 1<<10)
	damageFile(h.t, filepath.Join(h.dir, "store/member/snap/db"), 0)
	return logs[0]
}

// sums are the checksums of all files below a directory.
func sums(t *testing.T, dir string) map[string][sha256.Size]byte {
	t.Helper()
	all := map[string][sha256.Size]byte{}
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = sha256.Sum256(b)
		return err
	}))
	return all
}

// launchDamaged starts a node whose store is damaged, and waits until it says so.
func (h *host) launchDamaged() (readyz string) {
	h.t.Helper()
	h.launch()
	h.eventually(startLimit, "the node to say that it is not ready", func() error {
		out, err := h.try("get", "--raw", "/readyz")
		if err == nil || !strings.Contains(out, "[-]store failed") {
			return notYet("%s %v", out, err)
		}
		readyz = out
		return nil
	})
	return readyz
}

// refusedStart runs a node that has to end by itself with exit code 1, and returns its last line.
func (h *host) refusedStart(extra ...string) string {
	h.t.Helper()
	out, err := h.run(30*time.Second, nil, h.args(extra...)...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || strings.Contains(out, "goroutine ") {
		h.t.Fatalf("the start ended with %v\n%s", err, out)
	}
	return out[strings.LastIndex(strings.TrimSpace(out), "\n")+1:]
}

func (h *host) revisionNow() int64 {
	h.t.Helper()
	out := h.kubectl("get", "--raw", "/api/v1/namespaces?limit=1")
	_, rest, _ := strings.Cut(out, `"resourceVersion":"`)
	digits, _, _ := strings.Cut(rest, `"`)
	n, err := strconv.ParseInt(digits, 10, 64)
	must(h.t, err)
	return n
}

// TestP21_DamagedStore: a node whose store is damaged answers reads from its newest snapshot, says what is wrong and what to do, writes nothing
// and leaves the running container alone. With the loss accepted it goes on from the snapshot, above every version that a client has seen. With
// no snapshot at all it never answers with an empty success, and never begins anew by itself.
func TestP21_DamagedStore(t *testing.T) {
	h := newHost(t, 3)
	h.start()
	h.importDemo()
	h.apply(demoDeployment("web", 1, ""))
	pod := h.waitPods("web", 1)[0]
	pid := h.containerPID(pod)
	if _, err := h.run(startLimit, nil, "snapshot", "save", "--data-dir", h.dir); err != nil {
		t.Fatal(err)
	}
	h.kubectl("create", "configmap", "later")
	seen := h.revisionNow()
	h.kill()
	file := h.damageStore()
	before := sums(t, filepath.Join(h.dir, "store"))

	readyz := h.launchDamaged()
	for _, part := range []string{file, "--accept-data-loss", "put the file back", "read-only"} {
		mustContain(t, "/readyz", readyz, part)
	}
	h.readsOnly(file)
	time.Sleep(3 * time.Second) // whatever wanted to act would have acted
	h.untouched(pod.Status.PodIP, pid)
	if c, err := net.DialTimeout("tcp", h.kubelet, time.Second); err == nil {
		c.Close()
		t.Error("a kubelet runs on a state of the past")
	}
	h.stop()
	for path, sum := range sums(t, filepath.Join(h.dir, "store")) {
		if before[path] != sum {
			t.Errorf("%s was changed", path)
		}
	}
	h.untouched(pod.Status.PodIP, pid)

	h.start("--accept-data-loss")
	mustContain(t, "log", h.tail(200), "what was written after")
	if out, err := h.try("get", "configmap", "later"); err == nil || !strings.Contains(out, "NotFound") {
		t.Errorf("what was written after the snapshot: %s %v", out, err)
	}
	if now := h.revisionNow(); now <= seen {
		t.Errorf("the store is at revision %d, a client has seen %d", now, seen)
	}
	h.kubectl("create", "configmap", "afterwards")
	if again := h.waitPods("web", 1)[0]; again.UID != pod.UID || h.containerPID(again) != pid {
		t.Errorf("the pod is another one: %s, process %d", again.UID, h.containerPID(again))
	}
	kept, _ := filepath.Glob(filepath.Join(h.dir, "store.before-restore-*/member/wal/*.wal"))
	if len(kept) == 0 {
		t.Error("the damaged files are not kept")
	}
	h.stop()
	h.withoutSnapshots()
}

// readsOnly checks what a person sees of a node that only answers reads.
func (h *host) readsOnly(file string) {
	h.t.Helper()
	c := exec.Command(filepath.Join(h.bin, "nodeactor"), "kubectl", "get", "deployments")
	c.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(h.dir, "admin.kubeconfig"), "HOME="+h.home)
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "web") || !strings.Contains(string(out), "Warning: the store is damaged") {
		h.t.Errorf("kubectl get: %v\n%s", err, out)
	}
	for _, args := range [][]string{{"create", "configmap", "new"}, {"delete", "deployment", "web"}, {"scale", "deployment", "web", "--replicas=3"}} {
		if out, err := h.try(args...); err == nil || !strings.Contains(out, "the store is read-only") || !strings.Contains(out, file) {
			h.t.Errorf("kubectl %v: %v\n%s", args, err, out)
		}
	}
	if out := h.kubectl("get", "--raw", "/livez"); out != "ok" {
		h.t.Errorf("/livez: %s", out)
	}
	status, err := h.run(startLimit, nil, "status", "--data-dir", h.dir)
	if err == nil || !strings.Contains(status, file) || !strings.Contains(status, "--accept-data-loss") {
		h.t.Errorf("status: %v\n%s", err, status)
	}
	tree, err := exec.Command(filepath.Join(h.bin, "nodeactor"), "tree", "--once", "--data-dir", h.dir).CombinedOutput()
	if err != nil || !strings.Contains(string(tree), file) || strings.Contains(string(tree), "node/kubelet") || strings.Contains(string(tree), "node/controllers") {
		h.t.Errorf("tree: %v\n%s", err, tree)
	}
}

// untouched checks that a pod's container is the same and answers.
func (h *host) untouched(ip string, pid int) {
	h.t.Helper()
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err != nil {
		h.t.Errorf("the container was stopped: %v", err)
	}
	if _, err := fetch(ip, "/"); err != nil {
		h.t.Errorf("the container does not answer: %v", err)
	}
}

// withoutSnapshots damages the store of a stopped node that has nothing to fall back to.
func (h *host) withoutSnapshots() {
	h.t.Helper()
	file := h.damageStore()
	must(h.t, os.RemoveAll(filepath.Join(h.dir, "snapshots")))
	readyz := h.launchDamaged()
	for _, part := range []string{file, "cannot be read", "nodeactor reset", "snapshot restore"} {
		mustContain(h.t, "/readyz", readyz, part)
	}
	for _, args := range [][]string{{"get", "configmaps"}, {"get", "--raw", "/api/v1/namespaces/default/configmaps"}, {"create", "configmap", "new"}} {
		if out, err := h.try(args...); err == nil || !strings.Contains(out, "the store cannot be read") {
			h.t.Errorf("kubectl %v: %v\n%s", args, err, out)
		}
	}
	if out := h.kubectl("get", "--raw", "/livez"); out != "ok" && !strings.Contains(out, "livez check passed") {
		h.t.Errorf("/livez: %s", out)
	}
	h.stop()
	last := h.refusedStart("--accept-data-loss")
	for _, part := range []string{file, "no good snapshot", "nodeactor reset"} {
		mustContain(h.t, "the last line", last, part)
	}
}
