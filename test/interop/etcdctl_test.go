package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	needsAdmission = "writes must pass admission: use kubectl"
	mayNotRead     = "the client certificate does not give the right to read the store"
)

// TestEtcdctl: etcd's own tools read a node's store as they read an etcd, and cannot change it.
func TestEtcdctl(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	n := startNode(t)
	e := n.admin()
	defineWidgets(ctx, t, n.dynamic)
	makeObjects(ctx, t, n.clientset, n.dynamic, "here")
	t.Run("get is the API's list", func(t *testing.T) {
		t.Logf("%d objects of %d resources are the same", sameAsStored(ctx, t, n.clientset, e), len(resources))
	})
	t.Run("watch is the API's watch", func(t *testing.T) { watchesTheSame(ctx, t, n, e) })
	t.Run("ranges", func(t *testing.T) { ranges(t, e) })
	t.Run("writes are refused", func(t *testing.T) { writesAreRefused(t, e) })
	t.Run("maintenance", func(t *testing.T) { maintains(t, n, e) })
	t.Run("snapshots", func(t *testing.T) { snapshots(t, e) })
	t.Run("snapshots of the node", func(t *testing.T) { ownSnapshots(t, n, e) })
	t.Run("certificates", func(t *testing.T) { certificates(t, n) })
}

// change is one event as either side tells it.
type change struct {
	deleted bool
	key     string
	rev     int64
}

// watchesTheSame compares `etcdctl watch --rev`, which begins in the middle of writes with their history, with a watch of the API.
func watchesTheSame(ctx context.Context, t *testing.T, n *node, e *ctl) {
	const ns, prefix, rounds = "here", "/registry/configmaps/here/", 60
	maps := n.clientset.CoreV1().ConfigMaps(ns)
	list, err := maps.List(ctx, metav1.ListOptions{})
	must(t, err)
	w, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	must(t, err)
	defer w.Stop()
	from, err := strconv.ParseInt(list.ResourceVersion, 10, 64)
	must(t, err)
	half, done := make(chan struct{}), make(chan error, 4)
	for writer := range 4 {
		go func() {
			for i := range rounds {
				if writer == 0 && i == rounds/2 {
					close(half)
				}
				name := numbered(numbered("live", writer), i%7)
				_, err := maps.Create(ctx, configMap(ns, name, "1"), metav1.CreateOptions{})
				if err == nil {
					_, err = maps.Update(ctx, configMap(ns, name, "2"), metav1.UpdateOptions{})
				}
				if err == nil {
					err = maps.Delete(ctx, name, metav1.DeleteOptions{})
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	<-half
	total := 4 * rounds * 3
	seen, stop := watchChanges(t, e, total, "--prefix", prefix, "--rev", strconv.FormatInt(from+1, 10))
	defer stop()
	for range 4 {
		must(t, <-done)
	}
	for i := range total {
		want := apiChange(ctx, t, w, prefix)
		if got := <-seen; got != want {
			t.Fatalf("event %d: etcdctl saw %+v, the API %+v", i, got, want)
		}
	}
	t.Logf("%d events are the same, in the same order", total)
}

func apiChange(ctx context.Context, t *testing.T, w watch.Interface, prefix string) change {
	t.Helper()
	select {
	case ev, ok := <-w.ResultChan():
		m, err := meta.Accessor(ev.Object)
		if !ok || err != nil {
			t.Fatalf("the API's watch ended: %v %v", ev, err)
		}
		rev, err := strconv.ParseInt(m.GetResourceVersion(), 10, 64)
		must(t, err)
		return change{ev.Type == watch.Deleted, prefix + m.GetName(), rev}
	case <-ctx.Done():
		t.Fatal("the API's watch is silent")
	}
	return change{}
}

// watchChanges runs `etcdctl watch` until stop, and sends up to n changes; the channel is closed when etcdctl ends.
func watchChanges(t *testing.T, e *ctl, n int, args ...string) (<-chan change, func()) {
	t.Helper()
	cmd := e.command(append([]string{"watch", "-w", "json"}, args...)...)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	seen := make(chan change, n)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(seen)
		readChanges(out, seen, n)
	}()
	return seen, func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = cmd.Wait()
	}
}

func readChanges(out io.Reader, seen chan<- change, n int) {
	for in := json.NewDecoder(bufio.NewReader(out)); n > 0; {
		var resp struct {
			Events []struct {
				Type int      `json:"type"`
				KV   keyValue `json:"kv"`
			}
		}
		if in.Decode(&resp) != nil {
			return
		}
		for _, ev := range resp.Events {
			if n > 0 {
				seen <- change{ev.Type == 1, string(ev.KV.Key), ev.KV.Mod}
				n--
			}
		}
	}
}

// ranges tries the ways to ask for a range.
func ranges(t *testing.T, e *ctl) {
	const prefix = "/registry/example.com/widgets/here/"
	all := e.get("--prefix", prefix)
	if all.Count != 20 || len(all.KVs) != 20 || all.More {
		t.Fatalf("got %d of %d", len(all.KVs), all.Count)
	}
	if got := e.get("--prefix", prefix, "--limit", "7"); got.Count != 20 || len(got.KVs) != 7 || !got.More {
		t.Errorf("limit: got %d of %d, more %v", len(got.KVs), got.Count, got.More)
	}
	if out := e.run("get", "--prefix", prefix, "--count-only", "-w", "fields"); !strings.Contains(out, "\"Count\" : 20\n") || strings.Contains(out, "Key") {
		t.Errorf("count only: got %s", out)
	}
	if got := e.get("--prefix", prefix, "--keys-only"); len(got.KVs) != 20 || got.KVs[3].Value != "" || got.KVs[3].Key != all.KVs[3].Key {
		t.Errorf("keys only: got %+v", got.KVs)
	}
	if got := e.get("--from-key", string(all.KVs[18].Key), "--limit", "2"); len(got.KVs) != 2 || got.KVs[1].Key != all.KVs[19].Key {
		t.Errorf("from key: got %+v", got.KVs)
	}
	if got := e.get("--prefix", prefix, "--sort-by", "MODIFY", "--order", "DESCEND", "--limit", "1"); len(got.KVs) != 1 || string(got.KVs[0].Key) != prefix+"w-19" {
		t.Errorf("the newest: got %+v", got.KVs)
	}
	if got := e.get(string(all.KVs[5].Key), string(all.KVs[9].Key), "--consistency", "s"); len(got.KVs) != 4 {
		t.Errorf("interval: got %+v", got.KVs)
	}
	e.refused("required revision is a future revision", "", "get", prefix, "--rev", "999999999")
}

// writesAreRefused tries everything that changes something.
func writesAreRefused(t *testing.T, e *ctl) {
	const key = "/registry/configmaps/here/cm-0"
	before := e.get(key)
	for _, args := range [][]string{
		{"put", key, "x"}, {"del", key}, {"del", "--prefix", "/registry/"}, {"lease", "grant", "10"}, {"lease", "revoke", "1234"},
		{"lease", "keep-alive", "--once", "1234"}, {"compact", "5"},
	} {
		e.refused(needsAdmission, "", args...)
	}
	e.refused(needsAdmission, "mod(\""+key+"\") > \"0\"\n\nput "+key+" x\n\n\n", "txn")
	if a := e.try("version(\""+key+"\") = \"1\"\n\nget --keys-only "+key+"\n\n\n", "txn"); a.code != 0 || !strings.Contains(a.out, "SUCCESS") {
		t.Errorf("a transaction that only reads: %+v", a)
	}
	for _, args := range [][]string{{"member", "add", "x", "--peer-urls=http://127.0.0.1:1"}, {"member", "remove", "1234"}, {"move-leader", "1234"},
		{"user", "list"}, {"auth", "enable"}, {"downgrade", "validate", "3.6"}} {
		e.refused("not served by this store: ", "", args...)
	}
	if after := e.get(key); after.KVs[0] != before.KVs[0] {
		t.Errorf("was %+v, is %+v", before.KVs, after.KVs)
	}
}

// maintains asks for what operators ask for.
func maintains(t *testing.T, n *node, e *ctl) {
	if out := e.run("endpoint", "health"); !strings.Contains(out, "is healthy") {
		t.Errorf("health: %s", out)
	}
	var status []struct {
		Status struct {
			Header  header
			Version string
			DBSize  int64
			Leader  uint64
		}
	}
	e.decode(e.run("endpoint", "status", "--cluster", "-w", "json"), &status)
	if len(status) != 1 || status[0].Status.Version != "3.7.3" || status[0].Status.DBSize == 0 || status[0].Status.Leader == 0 {
		t.Errorf("status: %+v", status)
	}
	if out := e.run("endpoint", "hashkv"); !strings.HasPrefix(out, "https://"+n.etcd+", ") {
		t.Errorf("hash: %s", out)
	}
	if out := e.run("alarm", "list"); out != "" {
		t.Errorf("alarms: %s", out)
	}
	if out := e.run("member", "list"); !strings.Contains(out, "started, interop, ") || !strings.Contains(out, ", https://"+n.etcd+", false") {
		t.Errorf("members: %s", out)
	}
	e.run("defrag")
}

// snapshots saves one with etcdctl, and has etcdutl look at it and restore it.
func snapshots(t *testing.T, e *ctl) {
	file, dir := filepath.Join(t.TempDir(), "snapshot.db"), filepath.Join(t.TempDir(), "restored")
	e.run("snapshot", "save", file)
	saved := snapshotStatus(t, e, file)
	var live []struct {
		HashKV struct {
			Header header `json:"header"`
			Hash   uint32 `json:"hash"`
		}
	}
	e.decode(e.run("endpoint", "hashkv", "--rev", strconv.FormatInt(saved.Revision, 10), "-w", "json"), &live)
	etcdutl := tool(t, "etcdutl")
	if a := finish(t, exec.Command(etcdutl, "snapshot", "restore", file, "--data-dir", dir)); a.code != 0 {
		t.Fatalf("restore: %s", a.err)
	}
	a := finish(t, exec.Command(etcdutl, "hashkv", filepath.Join(dir, "member", "snap", "db"), "--rev", strconv.FormatInt(saved.Revision, 10), "-w", "json"))
	var restored struct {
		Hash uint32 `json:"hash"`
	}
	e.decode(a.out, &restored)
	if a.code != 0 || restored.Hash == 0 || restored.Hash != live[0].HashKV.Hash {
		t.Fatalf("restored %+v, the node has %+v; %s", restored, live, a.err)
	}
	t.Logf("%d keys at revision %d, hash %d before and after", saved.TotalKey, saved.Revision, restored.Hash)
}

// ownSnapshots has etcdutl verify and restore what the node saved.
func ownSnapshots(t *testing.T, n *node, e *ctl) {
	file, dir := filepath.Join(t.TempDir(), "own.db"), filepath.Join(t.TempDir(), "restored")
	before := e.get("--prefix", "/", "--keys-only")
	if a := n.nodeactor("snapshot", "save", file); a.code != 0 {
		t.Fatalf("save: %+v", a)
	}
	saved := snapshotStatus(t, e, file)
	if saved.Revision < before.Header.Revision || saved.TotalKey < len(before.KVs) {
		t.Errorf("saved %+v, there were %d keys at revision %d", saved, len(before.KVs), before.Header.Revision)
	}
	if a := finish(t, exec.Command(tool(t, "etcdutl"), "snapshot", "restore", file, "--data-dir", dir, "--bump-revision", "1000000000", "--mark-compacted")); a.code != 0 {
		t.Errorf("restore: %s", a.err)
	}
	t.Logf("%+v", saved)
}

// snapshotFacts are what etcdutl says of a snapshot file.
type snapshotFacts struct {
	Hash      uint32 `json:"hash"`
	Revision  int64  `json:"revision"`
	TotalKey  int    `json:"totalKey"`
	TotalSize int64  `json:"totalSize"`
}

// snapshotStatus has etcdutl verify a file.
func snapshotStatus(t *testing.T, e *ctl, file string) (facts snapshotFacts) {
	t.Helper()
	a := finish(t, exec.Command(tool(t, "etcdutl"), "snapshot", "status", file, "-w", "json"))
	if a.code != 0 {
		t.Fatalf("%s: %s", file, a.err)
	}
	e.decode(a.out, &facts)
	if facts.Hash == 0 || facts.Revision == 0 || facts.TotalKey == 0 {
		t.Fatalf("%s: %+v", file, facts)
	}
	return facts
}

// certificates tries who may read.
func certificates(t *testing.T, n *node) {
	env := n.nodeactor("etcd", "env")
	if want := fmt.Sprintf("export ETCDCTL_ENDPOINTS='https://%s'\nexport ETCDCTL_CACERT='%s'\nexport ETCDCTL_CERT='%s'\nexport ETCDCTL_KEY='%s'\n",
		n.etcd, n.pki("ca.crt"), n.pki("admin.pem"), n.pki("admin.pem")); env.out != want {
		t.Errorf("env: %+v", env)
	}
	dir := t.TempDir()
	if a := n.nodeactor("etcd", "cert", "alice", "--out", dir); a.code != 0 || !strings.Contains(a.out, "alice.key") {
		t.Fatalf("cert: %+v", a)
	}
	if info, err := os.Stat(filepath.Join(dir, "alice.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key: %v, %v", info.Mode(), err)
	}
	reader := n.ctl(filepath.Join(dir, "alice.crt"), filepath.Join(dir, "alice.key"))
	if got := reader.get("--prefix", "/registry/namespaces/", "--keys-only"); got.Count < 5 {
		t.Errorf("a reader got %+v", got)
	}
	reader.refused(needsAdmission, "", "put", "/registry/x", "y")
	other := authorityOf(t, n.pki("ca.pem")).client("mallory", "system:nodes")
	n.ctl(other, other).refused(mayNotRead, "", "get", "/registry/x")
	n.ctl(other, other).refused("watch is canceled by the server", "", "watch", "/registry/x")
	n.ctl("", "").refused("context deadline exceeded", "", "get", "/registry/x", "--dial-timeout", "1s", "--command-timeout", "1s")
	for _, wrong := range [][]string{{"Alice"}, {"alice", "--days", "0"}, {"alice", "--days", "4000"}} {
		if a := n.nodeactor(append([]string{"etcd", "cert", "--out", dir}, wrong...)...); a.code == 0 {
			t.Errorf("cert %v: %+v", wrong, a)
		}
	}
}
