package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// snapshotTool runs `nodeactor snapshot` on the host's node.
func (h *host) snapshotTool(args ...string) (string, error) {
	return h.run(podLimit, nil, append(append([]string{"snapshot"}, args...), "--data-dir", h.dir)...)
}

// revision is the resourceVersion of a list at this moment.
func (h *host) revision() int64 {
	h.t.Helper()
	out := h.kubectl("get", "--raw", "/api/v1/namespaces/default/configmaps?limit=1")
	_, rest, _ := strings.Cut(out, `"resourceVersion":"`)
	text, _, _ := strings.Cut(rest, `"`)
	rev, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		h.t.Fatalf("no revision in %s", out)
	}
	return rev
}

// TestSnapshotTheWholeWay saves, destroys, restores and starts again: what was deleted is back, what came later is gone, nobody sees time go
// back, and the containers are those of the restored pods.
func TestSnapshotTheWholeWay(t *testing.T) {
	h := newHost(t, 23)
	h.start("--snapshot-every", "off")
	h.importDemo()
	h.apply(onePod("stays", `command: ["/demo", "sleep"]`, "Always"))
	h.apply(onePod("deleted", `command: ["/demo", "sleep"]`, "Always"))
	stays := h.containerPID(h.waitPhase("stays", "Running"))
	h.waitPhase("deleted", "Running")
	h.kubectl("create", "configmap", "kept", "--from-literal=x=before")

	out, err := h.snapshotTool("save")
	must(t, err)
	saved := strings.TrimSpace(out[strings.Index(out, "/"):])
	h.kubectl("delete", "pod", "deleted")
	h.kubectl("delete", "configmap", "kept")
	h.kubectl("create", "configmap", "later", "--from-literal=x=after")
	h.apply(onePod("later", `command: ["/demo", "sleep"]`, "Always"))
	later := h.containerPID(h.waitPhase("later", "Running"))
	before := h.revision()
	h.snapshotRefusals(saved)

	h.stop()
	out, err = h.snapshotTool("restore", "newest", "--force")
	must(t, err)
	mustContain(t, "what restore says", out, filepath.Base(saved), "store.before-restore-", "start the node")
	h.start("--snapshot-every", "off")
	if got := h.kubectl("get", "configmap", "kept", "-o", "jsonpath={.data.x}"); got != "before" {
		t.Errorf("the deleted object reads %q", got)
	}
	if out, err := h.try("get", "configmap", "later"); err == nil {
		t.Errorf("what came after the snapshot is still there: %s", out)
	}
	if now := h.revision(); now <= before {
		t.Errorf("time went back: revision %d, before the restore it was %d", now, before)
	}
	h.watchFrom(before)
	h.eventually(podLimit, "the deleted pod to run again", func() error {
		out, err := h.try("get", "pod", "deleted", "-o", "jsonpath={.status.containerStatuses[0].state.running.startedAt}")
		if err == nil && out == "" {
			return notYet("it does not run")
		}
		return err
	})
	if pid := h.containerPID(h.waitPhase("stays", "Running")); pid != stays {
		t.Errorf("the pod that was there all the time has process %d, it was %d", pid, stays)
	}
	h.eventually(podLimit, "the container of the pod that is not in the snapshot to end", func() error {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", later)); err == nil {
			return notYet("process %d still runs", later)
		}
		return nil
	})
	h.kubectl("create", "configmap", "later", "--from-literal=x=again")
}

// snapshotRefusals tries what must be refused while the node runs, and a damaged file.
func (h *host) snapshotRefusals(saved string) {
	h.t.Helper()
	if out, err := h.snapshotTool("restore", saved, "--force"); err == nil || !strings.Contains(err.Error()+out, "only while it is stopped") {
		h.t.Errorf("restored under a running node: %s %v", out, err)
	}
	raw, err := os.ReadFile(saved)
	must(h.t, err)
	raw[len(raw)/2] ^= 1
	bad := filepath.Join(h.t.TempDir(), "bad.db")
	must(h.t, os.WriteFile(bad, raw, 0o600))
	if out, err := h.snapshotTool("verify", saved, bad); err == nil || !strings.Contains(err.Error()+out, bad+": it is damaged") || !strings.Contains(err.Error()+out, saved+": good") {
		h.t.Errorf("verified a damaged one: %s %v", out, err)
	}
	copied := filepath.Join(h.t.TempDir(), "copy.db")
	_, err = h.snapshotTool("save", copied)
	must(h.t, err)
	_, err = h.snapshotTool("verify", copied)
	must(h.t, err)
	out, err := h.snapshotTool("list", "-o", "name")
	must(h.t, err)
	if strings.TrimSpace(out) != filepath.Base(saved) {
		h.t.Errorf("listed %q", out)
	}
}

// watchFrom proves that a watch from a revision before the restore is told to list anew.
func (h *host) watchFrom(rev int64) {
	h.t.Helper()
	out, err := h.try("get", "--raw", fmt.Sprintf("/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=5&resourceVersion=%d", rev))
	if text := fmt.Sprint(out, err); !strings.Contains(text, `"reason":"Expired","code":410`) && !strings.Contains(text, "too old resource version") {
		h.t.Errorf("a watch from before the restore: %s", text)
	}
}

// TestAutomaticSnapshots lets a node save by itself: once when something was written, not again when nothing was, and before another version
// of the program opens the store.
func TestAutomaticSnapshots(t *testing.T) {
	h := newHost(t, 24)
	h.start("--snapshot-every", "2s")
	list := func() []string {
		out, err := h.snapshotTool("list", "-o", "name")
		must(t, err)
		return strings.Fields(out)
	}
	h.eventually(podLimit, "a snapshot of a quiet store", func() error {
		if names := list(); len(names) == 0 || !strings.Contains(names[0], fmt.Sprintf("-%d-periodic", h.revision())) {
			return notYet("there are %v, the store is at %d", names, h.revision())
		}
		return nil
	})
	quiet, rev := list(), h.revision()
	time.Sleep(5 * time.Second)
	if now := list(); h.revision() == rev && len(now) != len(quiet) {
		t.Errorf("nothing was written, and there are %v after %v", now, quiet)
	}
	if v, err := h.metric(`nodeactor_snapshots_total{result="success"}`); err != nil || v < 1 {
		t.Errorf("the metric says %v, %v", v, err)
	}
	h.stop()
	must(t, os.WriteFile(filepath.Join(h.dir, "version"), []byte("v0.0.1-older\n"), 0o600))
	h.start("--snapshot-every", "off")
	if names := list(); !strings.HasSuffix(names[0], "-upgrade.db") {
		t.Errorf("before the upgrade nothing was saved: %v", names)
	}
	must(t, h.logged("last version"))
	n := len(list())
	h.stop()
	h.start("--snapshot-every", "off")
	if now := list(); len(now) != n {
		t.Errorf("the same version saved once more: %v", now)
	}
}
