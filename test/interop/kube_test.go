package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// minutesEnv switches TestStockAPIServer on, and says for how many minutes it keeps the kube-apiserver under load.
	minutesEnv = "INTEROP_MINUTES"
	// pace is the time between two writes under that load.
	pace = 100 * time.Millisecond
)

// TestStockAPIServer: a kube-apiserver as it is published works on a node's etcd API as on an etcd, and both serve the same cluster.
func TestStockAPIServer(t *testing.T) {
	minutes, err := strconv.ParseFloat(os.Getenv(minutesEnv), 64)
	if err != nil {
		t.Skipf("skipped: it builds a kube-apiserver and runs it for minutes; `make interop` does, or set %s", minutesEnv)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration((minutes+10)*float64(time.Minute)))
	defer cancel()
	n := startNode(t, "--etcd-writes")
	tool(t, "kube-apiserver")
	begin := time.Now()
	p := startPeer(t, n)
	t.Logf("a kube-apiserver is ready on the node's etcd API after %s", time.Since(begin).Round(time.Millisecond))
	t.Run("kubectl", func(t *testing.T) { kubectlWorks(ctx, t, n, p) })
	makeObjects(ctx, t, p.clientset, p.dynamic, "made-there")
	makeObjects(ctx, t, n.clientset, n.dynamic, "made-here")
	t.Run("same keys and encoding", func(t *testing.T) { sameObjects(ctx, t, n, p) })
	t.Run("same watch", func(t *testing.T) { sameWatch(ctx, t, n, p) })
	t.Run("kubectl watches", func(t *testing.T) { kubectlWatches(ctx, t, n, p) })
	t.Run("load", func(t *testing.T) { underLoad(ctx, t, n, p, time.Duration(minutes*float64(time.Minute))) })
	t.Run("same keys and encoding after it", func(t *testing.T) { sameObjects(ctx, t, n, p) })
	t.Run("complaints", func(t *testing.T) {
		if lines := p.complaints(); len(lines) > 0 {
			t.Errorf("it logged errors:\n%s", strings.Join(lines, ""))
		}
		metrics(ctx, t, p)
	})
	t.Run("the node crashes", func(t *testing.T) { survivesCrash(ctx, t, n, p) })
	p.end()
	must(t, ready(n.clientset))
}

// kubectlWorks creates, reads and deletes through the kube-apiserver what the node then shows, and the other way round.
func kubectlWorks(ctx context.Context, t *testing.T, n *node, p *peer) {
	p.kubectl("", "create", "namespace", "theirs")
	_, err := n.clientset.CoreV1().Namespaces().Get(ctx, "theirs", metav1.GetOptions{})
	must(t, err)
	p.kubectl("", "create", "configmap", "-n", "theirs", "cm", "--from-literal=value=1")
	cm, err := n.clientset.CoreV1().ConfigMaps("theirs").Get(ctx, "cm", metav1.GetOptions{})
	must(t, err)
	cm.Data["value"] = "2"
	_, err = n.clientset.CoreV1().ConfigMaps("theirs").Update(ctx, cm, metav1.UpdateOptions{})
	must(t, err)
	if out := p.kubectl("", "get", "configmap", "-n", "theirs", "cm", "-o", "jsonpath={.data.value}"); out != "2" {
		t.Errorf("kubectl get: %q", out)
	}
	p.kubectl("", "create", "deployment", "-n", "theirs", "d", "--image=none.invalid/none", "--replicas=0")
	eventually(t, 20*time.Second, func() error { // the node's controllers make the ReplicaSet, and kubectl sees it
		if out := p.kubectl("", "get", "replicasets", "-n", "theirs", "-l", "app=d", "-o", "name"); strings.Count(out, "\n") != 1 {
			return fmt.Errorf("replica sets: %q", out)
		}
		return nil
	})
	p.kubectl(widgetCRD, "create", "-f", "-")
	p.kubectl("", "wait", "--for=condition=Established", "crd/widgets.example.com", "--timeout=20s")
	servesWidgets(ctx, t, p.dynamic)
	servesWidgets(ctx, t, n.dynamic)
	text, err := json.Marshal(widget(t, "theirs", "w"))
	must(t, err)
	p.kubectl(string(text), "create", "-f", "-")
	w, err := n.dynamic.Resource(widgets).Namespace("theirs").Get(ctx, "w", metav1.GetOptions{})
	must(t, err)
	if size := w.Object["spec"].(map[string]any)["size"]; size != int64(3) {
		t.Errorf("widget: %v", w)
	}
	p.kubectl("", "delete", "widget", "-n", "theirs", "w")
	p.kubectl("", "delete", "deployment,configmap", "-n", "theirs", "d", "cm", "--ignore-not-found")
	if _, err := n.clientset.CoreV1().ConfigMaps("theirs").Get(ctx, "cm", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after kubectl delete: %v", err)
	}
	p.kubectl("", "delete", "namespace", "theirs", "--timeout=60s") // the node's controller empties it
	t.Log("kubectl create, get, wait and delete of Namespaces, ConfigMaps, Deployments, CustomResourceDefinitions and custom resources; each seen by the node")
}

// sameObjects compares what either serves with what is stored, and the encoding of what either has made.
func sameObjects(ctx context.Context, t *testing.T, n *node, p *peer) {
	e := n.admin()
	here, there := sameAsStored(ctx, t, n.clientset, e), sameAsStored(ctx, t, p.clientset, e)
	for _, dir := range []string{"configmaps", "secrets", "services/specs", "deployments", "example.com/widgets"} {
		ours, theirs := firstBytes(e, dir, "made-here"), firstBytes(e, dir, "made-there")
		if ours != theirs {
			t.Errorf("%s: the node's begin with %q, the kube-apiserver's with %q", dir, ours, theirs)
		}
	}
	eventually(t, 20*time.Second, func() error { return sameServed(ctx, t, n, p) }) // controllers may still be at work
	t.Logf("%d objects of %d resources served by the node, %d by the kube-apiserver: all as they are stored, keys and contents", here, len(resources), there)
}

// sameServed compares the lists of both sides; leases change all the time.
func sameServed(ctx context.Context, t *testing.T, n *node, p *peer) error {
	for _, r := range resources {
		mine, _ := listed(ctx, t, n.clientset, r.path)
		other, _ := listed(ctx, t, p.clientset, r.path)
		if r.prefix != "/registry/leases/" && !equality.Semantic.DeepEqual(mine, other) {
			return fmt.Errorf("%s: the node serves %v, the kube-apiserver %v", r.path, mine, other)
		}
	}
	return nil
}

// firstBytes are those that tell how an object is encoded.
func firstBytes(e *ctl, dir, ns string) string {
	const header = 12
	kvs := e.get("--prefix", "/registry/"+dir+"/"+ns+"/", "--limit", "1").KVs
	if len(kvs) == 0 {
		return "nothing of " + ns
	}
	return string(kvs[0].Value)[:header]
}

// sameWatch writes at both sides and compares what watches of both see.
func sameWatch(ctx context.Context, t *testing.T, n *node, p *peer) {
	const ns, each = "made-here", 100
	list, err := p.clientset.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{})
	must(t, err)
	from := metav1.ListOptions{ResourceVersion: list.ResourceVersion}
	mine, err := n.clientset.CoreV1().ConfigMaps(ns).Watch(ctx, from)
	must(t, err)
	defer mine.Stop()
	other, err := p.clientset.CoreV1().ConfigMaps(ns).Watch(ctx, from)
	must(t, err)
	defer other.Stop()
	done := make(chan error, 2)
	for name, c := range map[string]kubernetes.Interface{"n": n.clientset, "p": p.clientset} {
		go func() { done <- churn(ctx, c, ns, name, each) }()
	}
	for i := range 2 * each * 3 {
		a, b := apiChange(ctx, t, mine, ""), apiChange(ctx, t, other, "")
		if a != b {
			t.Fatalf("event %d: the node's watch saw %+v, the kube-apiserver's %+v", i, a, b)
		}
	}
	for range 2 {
		must(t, <-done)
	}
	t.Logf("%d events of writes at both sides: both watches saw the same, in the same order", 2*each*3)
}

// churn creates, changes and deletes ConfigMaps.
func churn(ctx context.Context, c kubernetes.Interface, ns, name string, times int) error {
	maps := c.CoreV1().ConfigMaps(ns)
	for i := range times {
		cm := configMap(ns, numbered(name, i), "1")
		if _, err := maps.Create(ctx, cm, metav1.CreateOptions{}); err != nil {
			return err
		}
		cm.Data["value"] = "2"
		if _, err := maps.Update(ctx, cm, metav1.UpdateOptions{}); err != nil {
			return err
		}
		if err := maps.Delete(ctx, cm.Name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// kubectlWatches follows a kind with `kubectl get --watch` while the node writes.
func kubectlWatches(ctx context.Context, t *testing.T, n *node, p *peer) {
	const ns = "made-there"
	cmd := exec.CommandContext(ctx, p.kubectlBin, "--kubeconfig", p.kubeconfig, "get", "configmaps", "-n", ns, "--watch", "--output-watch-events", "--no-headers")
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	lines := bufio.NewScanner(out)
	next := func(name string) (event string) {
		for lines.Scan() {
			if f := strings.Fields(lines.Text()); len(f) > 1 && f[1] == name {
				return f[0]
			}
		}
		t.Fatalf("kubectl get --watch ended before %s", name)
		return ""
	}
	next("cm-9") // the last of the list
	must(t, churn(ctx, n.clientset, ns, "seen", 1))
	if got := next("seen-0") + next("seen-0") + next("seen-0"); got != "ADDEDMODIFIEDDELETED" {
		t.Errorf("saw %s", got)
	}
	t.Log("kubectl get --watch shows what the node creates, changes and deletes")
}

// underLoad keeps writing at both sides while the kube-apiserver compacts, renews its lease and follows; lists of both must be the same.
func underLoad(ctx context.Context, t *testing.T, n *node, p *peer, long time.Duration) {
	e := n.admin()
	first := e.get("--prefix", "/registry/masterleases/")
	if len(first.KVs) != 1 || first.KVs[0].Lease == 0 || string(first.KVs[0].Key) != "/registry/masterleases/"+peerAddress {
		t.Fatalf("the lease of its endpoint: %+v", first.KVs)
	}
	sides, rounds := []kubernetes.Interface{n.clientset, p.clientset}, 0
	for end := time.Now().Add(long); time.Now().Before(end); rounds++ {
		must(t, churn(ctx, sides[rounds%2], "made-here", "load", 1))
		if rounds%50 == 0 {
			sameList(ctx, t, sides)
		}
		time.Sleep(pace)
	}
	t.Logf("%d writes at both sides in %s, %d comparisons of lists", 3*rounds, long, (rounds+49)/50)
	if long < 3*compactionInterval {
		t.Logf("%s is too short to judge its compactions; that takes %s", long, 3*compactionInterval)
		return
	}
	if now := e.get("--prefix", "/registry/masterleases/"); len(now.KVs) != 1 || now.KVs[0].Mod == first.KVs[0].Mod {
		t.Errorf("the lease of its endpoint was not renewed: %+v", now.KVs)
	}
	compacted := e.get("compact_rev_key").KVs
	if len(compacted) != 1 || compacted[0].Version < 2 {
		t.Fatalf("it has not compacted: %+v", compacted)
	}
	for i, side := range sides {
		_, err := side.CoreV1().ConfigMaps("made-here").List(ctx, metav1.ListOptions{ResourceVersion: "10", ResourceVersionMatch: metav1.ResourceVersionMatchExact})
		if !apierrors.IsResourceExpired(err) {
			t.Errorf("side %d lists at a revision that was compacted: %v", i, err)
		}
	}
	t.Logf("it compacted %d times, the last time to %s; its endpoint's lease was renewed", compacted[0].Version, compacted[0].Value)
}

// sameList compares consistent lists of both sides while nobody writes to the namespace.
func sameList(ctx context.Context, t *testing.T, sides []kubernetes.Interface) {
	t.Helper()
	mine, err := sides[0].CoreV1().ConfigMaps("made-here").List(ctx, metav1.ListOptions{})
	must(t, err)
	other, err := sides[1].CoreV1().ConfigMaps("made-here").List(ctx, metav1.ListOptions{})
	must(t, err)
	if !equality.Semantic.DeepEqual(mine.Items, other.Items) {
		t.Errorf("the node lists %d objects at %s, the kube-apiserver %d at %s", len(mine.Items), mine.ResourceVersion, len(other.Items), other.ResourceVersion)
	}
}

var (
	consistentReads = regexp.MustCompile(`(?m)^apiserver_watch_cache_consistent_read_total\{fallback="(\w+)",.*success="(\w+)"\} (\d+)$`)
	requestErrors   = regexp.MustCompile(`(?m)^etcd_request_errors_total\{.*$`)
)

// metrics asks it how it got on with its etcd: consistent reads come from its cache, and no request failed.
func metrics(ctx context.Context, t *testing.T, p *peer) {
	raw, err := p.clientset.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	must(t, err)
	good, bad := 0, 0
	for _, m := range consistentReads.FindAllStringSubmatch(string(raw), -1) {
		count, err := strconv.Atoi(m[3])
		must(t, err)
		switch { // neither: a custom resource was asked for before its cache was filled, and again
		case m[1] == "true":
			bad += count
			t.Log(m[0])
		case m[2] == "true":
			good += count
		}
	}
	if good == 0 || bad > 0 {
		t.Errorf("%d consistent reads from its cache, %d from the store", good, bad)
	}
	t.Logf("%d consistent reads came from its cache, none fell back to the store; requests that failed: %q", good, requestErrors.FindAllString(string(raw), -1))
}

// survivesCrash kills the node below the kube-apiserver, whose watches must go on without a gap at the next one.
func survivesCrash(ctx context.Context, t *testing.T, n *node, p *peer) {
	const ns, times = "made-here", 10
	list, err := p.clientset.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{})
	must(t, err)
	w, err := p.clientset.CoreV1().ConfigMaps(ns).Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	must(t, err)
	defer w.Stop()
	must(t, churn(ctx, n.clientset, ns, "before", times))
	begin := time.Now()
	n.crash()
	must(t, churn(ctx, n.clientset, ns, "after", times))
	for _, name := range []string{"before", "after"} {
		for i := range times {
			for _, deleted := range []bool{false, false, true} {
				if got := apiChange(ctx, t, w, ""); got.key != numbered(name, i) || got.deleted != deleted {
					t.Fatalf("saw %+v, wanted %s, deleted %v", got, numbered(name, i), deleted)
				}
			}
		}
	}
	t.Logf("a watch of the kube-apiserver went on %s after the node was killed", time.Since(begin).Round(time.Millisecond))
	eventually(t, startLimit, func() error { return churn(ctx, p.clientset, ns, fmt.Sprint("through-", time.Now().UnixNano()), 1) })
	sameList(ctx, t, []kubernetes.Interface{n.clientset, p.clientset})
}
