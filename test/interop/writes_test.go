package interop

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clientv1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// TestEtcdctlWrites: on a node that takes writes they do what they do in an etcd, and the API shows them at once.
func TestEtcdctlWrites(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	n := startNode(t, "--etcd-writes")
	e := n.admin()
	t.Run("it is said loudly", func(t *testing.T) {
		if a := n.nodeactor("status"); a.code != 0 || !strings.Contains(a.out, "takes writes") {
			t.Errorf("status: %+v", a)
		}
	})
	t.Run("readers may not", func(t *testing.T) { readersMayNot(t, n) })
	t.Run("what is written is served", func(t *testing.T) { writtenIsServed(ctx, t, n, e) })
	t.Run("leases", func(t *testing.T) { leasesEnd(ctx, t, n, e) })
	t.Run("what cannot be decoded hurts nothing else", func(t *testing.T) { garbageStaysAlone(ctx, t, n, e) })
	t.Run("compaction", func(t *testing.T) { compacts(ctx, t, n, e) })
	must(t, ready(n.clientset))
}

func readersMayNot(t *testing.T, n *node) {
	dir := t.TempDir()
	if a := n.nodeactor("etcd", "cert", "bob", "--out", dir); a.code != 0 {
		t.Fatalf("cert: %+v", a)
	}
	bob := n.ctl(dir+"/bob.crt", dir+"/bob.key")
	bob.refused("not to write to it", "", "put", "/registry/configmaps/default/x", "y")
	bob.refused("not to write to it", "", "lease", "grant", "10")
	if got := bob.get("/registry/namespaces/default"); got.Count != 1 {
		t.Errorf("got %+v", got)
	}
}

// handmade is a ConfigMap as a tool might write it.
func handmade(name, value string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"default","uid":"6a4e7d0c-0000-4000-8000-000000000001","creationTimestamp":"2026-01-01T00:00:00Z"},"data":{"value":%q}}`, name, value)
}

const inDefault = "/registry/configmaps/default/"

// expect reads the next event of a watch.
func expect(ctx context.Context, t *testing.T, w watch.Interface, kind watch.EventType, name, value string) (revision string) {
	t.Helper()
	select {
	case ev, ok := <-w.ResultChan():
		cm, is := ev.Object.(*v1.ConfigMap)
		if !ok || !is || ev.Type != kind || cm.Name != name || cm.Data["value"] != value {
			t.Fatalf("got %v, wanted %s of %s", ev, kind, name)
		}
		return cm.ResourceVersion
	case <-ctx.Done():
		t.Fatalf("no event for %s", name)
	}
	return ""
}

// watched is the ConfigMaps of the namespace, and a watch of them from now on.
func watched(ctx context.Context, t *testing.T, n *node) (clientv1.ConfigMapInterface, watch.Interface) {
	t.Helper()
	maps := n.clientset.CoreV1().ConfigMaps("default")
	list, err := maps.List(ctx, metav1.ListOptions{})
	must(t, err)
	w, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	must(t, err)
	return maps, w
}

func writtenIsServed(ctx context.Context, t *testing.T, n *node, e *ctl) {
	maps, w := watched(ctx, t, n)
	defer w.Stop()
	e.run("put", inDefault+"a", handmade("a", "1"))
	got, err := maps.Get(ctx, "a", metav1.GetOptions{}) // at once
	must(t, err)
	if rev := expect(ctx, t, w, watch.Added, "a", "1"); rev != got.ResourceVersion || rev != fmt.Sprint(e.get(inDefault + "a").KVs[0].Mod) {
		t.Errorf("event at %s, read at %s", rev, got.ResourceVersion)
	}
	if out := e.run("put", "--prev-kv", inDefault+"a", handmade("a", "2")); !strings.Contains(out, handmade("a", "1")) {
		t.Errorf("said %q", out)
	}
	expect(ctx, t, w, watch.Modified, "a", "2")
	txn := fmt.Sprintf("mod(%q) > \"0\"\n\nput %s '%s'\nput %s '%s'\ndel %s\n\n\n", inDefault+"a", inDefault+"b", handmade("b", "1"), inDefault+"c", handmade("c", "1"), inDefault+"a")
	if a := e.try(txn, "txn"); a.code != 0 || !strings.HasPrefix(a.out, "SUCCESS") {
		t.Fatalf("txn: %+v", a)
	}
	revs := map[string]bool{expect(ctx, t, w, watch.Added, "b", "1"): true, expect(ctx, t, w, watch.Added, "c", "1"): true, expect(ctx, t, w, watch.Deleted, "a", "2"): true}
	if len(revs) != 1 {
		t.Errorf("one transaction, but its events are at %v", revs)
	}
	b, err := maps.Get(ctx, "b", metav1.GetOptions{})
	must(t, err)
	b.Data["value"] = "of the API"
	_, err = maps.Update(ctx, b, metav1.UpdateOptions{})
	must(t, err)
	expect(ctx, t, w, watch.Modified, "b", "of the API")
	if out := e.run("del", "--prev-kv", "--prefix", inDefault+"b"); !strings.HasPrefix(out, "1\n") {
		t.Errorf("said %q", out)
	}
	expect(ctx, t, w, watch.Deleted, "b", "of the API")
	if _, err := maps.Get(ctx, "b", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
}

func leasesEnd(ctx context.Context, t *testing.T, n *node, e *ctl) {
	_, w := watched(ctx, t, n)
	defer w.Stop()
	grant := func(seconds string) string { return strings.Fields(e.run("lease", "grant", seconds))[1] }
	short, long := grant("2"), grant("600")
	e.run("put", "--lease", short, inDefault+"short", handmade("short", "1"))
	e.run("put", "--lease", long, inDefault+"long", handmade("long", "1"))
	expect(ctx, t, w, watch.Added, "short", "1")
	expect(ctx, t, w, watch.Added, "long", "1")
	if out := e.run("lease", "timetolive", long, "--keys"); !strings.Contains(out, "granted with TTL(600s)") || !strings.Contains(out, inDefault+"long") {
		t.Errorf("said %q", out)
	}
	if out := e.run("lease", "keep-alive", "--once", long); !strings.Contains(out, "keepalived with TTL(600)") {
		t.Errorf("said %q", out)
	}
	if out := e.run("lease", "list"); !strings.Contains(out, long) {
		t.Errorf("said %q", out)
	}
	expect(ctx, t, w, watch.Deleted, "short", "1")
	if out := e.run("lease", "timetolive", short); !strings.Contains(out, "already expired") {
		t.Errorf("said %q", out)
	}
	e.run("lease", "revoke", long)
	expect(ctx, t, w, watch.Deleted, "long", "1")
	e.refused("requested lease not found", "", "put", "--lease", "1234", inDefault+"x", "y")
}

// garbageStaysAlone: an object that nobody can read fails the lists that have it in them, says its key, and disturbs nobody else.
func garbageStaysAlone(ctx context.Context, t *testing.T, n *node, e *ctl) {
	c := n.clientset
	elsewhere, err := c.CoreV1().ConfigMaps("kube-system").List(ctx, metav1.ListOptions{})
	must(t, err)
	for _, key := range []string{inDefault + "garbage", "/registry/pods/default/garbage", "/registry/deployments/default/garbage", "/registry/example.com/nothings/x", "/registry/odd", "/registry/"} {
		e.run("put", key, "\x01garbage")
	}
	if _, err := c.CoreV1().ConfigMaps("default").Get(ctx, "kube-root-ca.crt", metav1.GetOptions{}); err != nil {
		t.Errorf("its neighbour: %v", err)
	}
	if list, err := c.CoreV1().ConfigMaps("kube-system").List(ctx, metav1.ListOptions{}); err != nil || len(list.Items) != len(elsewhere.Items) {
		t.Errorf("another namespace: %v", err)
	}
	if _, err := c.CoreV1().Secrets("").List(ctx, metav1.ListOptions{}); err != nil {
		t.Errorf("another resource: %v", err)
	}
	if _, err := c.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{}); err == nil || !strings.Contains(err.Error(), inDefault[len("/registry"):]+"garbage") {
		t.Errorf("the list with it: %v", err)
	}
	_, err = c.AppsV1().Deployments("kube-public").Create(ctx, deployment("kube-public", "works"), metav1.CreateOptions{})
	must(t, err)
	eventually(t, 20*time.Second, func() error {
		sets, err := c.AppsV1().ReplicaSets("kube-public").List(ctx, metav1.ListOptions{})
		if err == nil && len(sets.Items) != 1 {
			err = fmt.Errorf("%d replica sets", len(sets.Items))
		}
		return err
	})
	for _, prefix := range []string{inDefault + "garbage", "/registry/pods/default/garbage", "/registry/deployments/default/garbage", "/registry/example.com/nothings/", "/registry/odd"} {
		e.run("del", "--prefix", prefix)
	}
	e.run("del", "/registry/")
	for _, list := range []func() error{
		func() error { _, err := c.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{}); return err },
		func() error { _, err := c.CoreV1().Pods("").List(ctx, metav1.ListOptions{}); return err },
		func() error { _, err := c.AppsV1().Deployments("").List(ctx, metav1.ListOptions{}); return err },
	} {
		if err := list(); err != nil {
			t.Errorf("after it: %v", err)
		}
	}
}

// compacts: what a client has forgotten is refused as such by both sides.
func compacts(ctx context.Context, t *testing.T, n *node, e *ctl) {
	maps := n.clientset.CoreV1().ConfigMaps("default")
	old, err := maps.Create(ctx, configMap("default", "old", "1"), metav1.CreateOptions{})
	must(t, err)
	old.Data["value"] = "2"
	now, err := maps.Update(ctx, old, metav1.UpdateOptions{})
	must(t, err)
	running, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: now.ResourceVersion})
	must(t, err)
	defer running.Stop()
	e.run("compact", now.ResourceVersion)
	const forgotten = "required revision has been compacted"
	e.refused(forgotten, "", "get", inDefault+"old", "--rev", old.ResourceVersion)
	e.refused(forgotten, "", "compact", old.ResourceVersion)
	if a := e.try("", "watch", inDefault+"old", "--rev", old.ResourceVersion); a.code == 0 || !strings.Contains(a.out+a.err, forgotten) {
		t.Errorf("watch: %+v", a)
	}
	if _, err := maps.List(ctx, metav1.ListOptions{ResourceVersion: old.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact}); !apierrors.IsResourceExpired(err) {
		t.Errorf("list at %s: %v", old.ResourceVersion, err)
	}
	if w, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: old.ResourceVersion}); err == nil {
		ev := <-w.ResultChan()
		if err := apierrors.FromObject(ev.Object); ev.Type != watch.Error || !apierrors.IsResourceExpired(err) {
			t.Errorf("watch from %s: %v", old.ResourceVersion, ev)
		}
		w.Stop()
	} else if !apierrors.IsResourceExpired(err) {
		t.Errorf("watch from %s: %v", old.ResourceVersion, err)
	}
	if got := e.get(inDefault+"old", "--rev", now.ResourceVersion); strconv.FormatInt(got.KVs[0].Mod, 10) != now.ResourceVersion {
		t.Errorf("what was kept: %+v", got)
	}
	must(t, maps.Delete(ctx, "old", metav1.DeleteOptions{}))
	expect(ctx, t, running, watch.Deleted, "old", "2") // who watched does not notice
}
