package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

const (
	// smallQuota is the least quota of a store; fillBytes is what one object puts into it.
	smallQuota = "16Mi"
	fillBytes  = 400_000
	fullPlace  = "/api/v1/namespaces/full/configmaps"
)

// send makes one request and returns its answer, whatever it is.
func (f *traffic) send(method, path string, body any) (int, http.Header, string) {
	f.t.Helper()
	raw, err := json.Marshal(body)
	must(f.t, err)
	req, err := http.NewRequest(method, f.base+path, bytes.NewReader(raw))
	must(f.t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := f.http.Do(req)
	must(f.t, err)
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(b)
}

func configMap(name string, size int, finalizers ...string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "finalizers": finalizers}, "data": map[string]string{"fill": strings.Repeat("x", size)},
	}
}

// fillStore creates objects until the store refuses one; it returns how many there are, and checks how it is refused.
func (f *traffic) fillStore() (n int) {
	f.t.Helper()
	for ; n < 1000; n++ {
		code, header, body := f.send(http.MethodPost, fullPlace, configMap(fmt.Sprintf("fill-%03d", n), fillBytes))
		switch {
		case code == http.StatusCreated:
			continue
		case code != http.StatusServiceUnavailable || header.Get("Retry-After") == "" || !strings.Contains(body, "--store-quota") || !strings.Contains(body, "delete objects"):
			f.t.Errorf("a full store answers %d, Retry-After %q: %s", code, header.Get("Retry-After"), body)
		}
		return n
	}
	f.t.Fatal("the store takes everything")
	return n
}

// busy writes so much that it is worth knowing who uses the processor, until it is known that the store does (P26).
func (f *traffic) busy(h *host) {
	f.t.Helper()
	load := newTraffic(h)
	load.start(24)
	defer load.end()
	h.eventually(20*time.Second, "the store's share of the processor", func() error {
		if share, _ := f.metric(`nodeactor_actor_cpu_cores{path="store/engine"`); share == 0 {
			return notYet("none was measured")
		}
		return nil
	})
}

// TestP23_FullStoreKeepsTheNode: a node whose store is over its quota goes on: reads, deletions, whole namespaces included, leases; other
// writes are told why and when to try again, and are taken within two seconds of there being room.
func TestP23_FullStoreKeepsTheNode(t *testing.T) {
	h := newHost(t, 7)
	h.start("--store-quota", smallQuota)
	h.kubectl("create", "namespace", "full")
	h.kubectl("create", "namespace", "doomed")
	h.kubectl("create", "configmap", "inside", "-n", "doomed")
	f := newTraffic(h)
	if code, _, body := f.send(http.MethodPost, fullPlace, configMap("held", 10, "example.com/hold")); code != http.StatusCreated {
		t.Fatalf("%d %s", code, body)
	}
	f.busy(h)
	n := f.fillStore()
	t.Logf("%d objects of %d KB filled it", n, fillBytes>>10)
	f.start(2)
	if out := h.kubectl("get", "--raw", "/readyz?verbose"); !strings.Contains(out, "[~]store-writes: refused") {
		t.Errorf("/readyz says nothing of it: %s", out)
	}
	if out, err := h.try("create", "configmap", "more", "-n", "full", "--from-literal=a=b"); err == nil || !strings.Contains(out, "--store-quota") {
		t.Errorf("kubectl create: %v\n%s", err, out)
	}
	h.apply(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"leader","namespace":"default"},"spec":{"holderIdentity":"me"}}`)
	h.kubectl("delete", "namespace", "doomed", "--timeout=30s")
	h.kubectl("delete", "configmap", "held", "-n", "full", "--wait=false")
	h.kubectl("patch", "configmap", "held", "-n", "full", "--type=json", `-p=[{"op":"remove","path":"/metadata/finalizers"}]`)
	if out, err := h.try("get", "configmap", "held", "-n", "full"); err == nil {
		t.Errorf("an object whose finalizer was removed is still there: %s", out)
	}
	for i := range 3 {
		h.kubectl("patch", "lease", "leader", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"holderIdentity":"%s"}}`, strings.Repeat("me", 10*(i+1))))
	}
	if ready := h.kubectl("get", "node", "host-a", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`); ready != "True" {
		t.Errorf("the node is Ready: %s, for its own lease did not go on", ready)
	}
	for i := range n / 3 {
		if code, _, body := f.send(http.MethodDelete, fmt.Sprintf("%s/fill-%03d", fullPlace, i), nil); code != http.StatusOK {
			t.Fatalf("a deletion is answered with %d %s", code, body)
		}
	}
	took := f.awaitWrites(time.Now())
	t.Logf("writes were taken again after %s", took.Round(time.Millisecond))
	if took > resumeLimit {
		t.Errorf("writes were taken again after %s", took)
	}
	f.end()
	h.runs()
	h.kubectl("create", "configmap", "after", "-n", "full", "--from-literal=a=b")
	h.eventually(10*time.Second, "the Event that tells of it", func() error {
		out := h.kubectl("get", "events", "-A", "--field-selector", "reason=StoreTakesWrites")
		if !strings.Contains(out, "host-a") {
			return notYet("%s", out)
		}
		return nil
	})
	if n := f.faults(); n != 0 {
		t.Errorf("%v faults were counted", n)
	}
	f.check()
}
