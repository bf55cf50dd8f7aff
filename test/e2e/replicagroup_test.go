package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// readyToo is the condition by which the test says when a replica is ready: readiness is what a change of shape waits for.
const readyToo = "example.org/caught-up"

const replicaGroup = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: apps.nodeactor.io/v1alpha1
kind: ReplicaGroup
metadata: {name: web}
spec:
  replicas: 2
  size: small
  podTemplate:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 5
      readinessGates: [{conditionType: example.org/caught-up}]
      containers:
      - name: web
        image: nodeactor.io/demo:v1
        lifecycle: {preStop: {sleep: {seconds: 1}}}
        readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1}
`

// patron asks a Service's ready addresses, as whoever routes to them would, and knows the last ones while the API is away.
type patron struct {
	*traffic
	mu        sync.Mutex
	addresses []string
	next      int
	answers   []string // who answered
	failed    []string
}

func newPatron(h *host) *patron { return &patron{traffic: newTraffic(h)} }

// look learns of the addresses. An answer that does not come is none.
func (p *patron) look() {
	resp, err := p.http.Get(p.base + "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3Dweb")
	if err != nil {
		return
	}
	defer resp.Body.Close()
	var l discoveryv1.EndpointSliceList
	if json.NewDecoder(resp.Body).Decode(&l) != nil || resp.StatusCode != http.StatusOK {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addresses = nil
	for _, slice := range l.Items {
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready != nil && *e.Conditions.Ready {
				p.addresses = append(p.addresses, e.Addresses...)
			}
		}
	}
}

// ask sends one request to the next address, over a connection of its own.
func (p *patron) ask() {
	p.look()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.addresses) == 0 {
		p.failed = append(p.failed, "no address is ready")
		return
	}
	p.next++
	ip := p.addresses[p.next%len(p.addresses)]
	client := http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + ip + ":8080/hostname")
	if err != nil {
		p.failed = append(p.failed, err.Error())
		return
	}
	defer resp.Body.Close()
	name, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		p.failed = append(p.failed, fmt.Sprintf("%s: %d %v", ip, resp.StatusCode, err))
		return
	}
	p.answers = append(p.answers, strings.TrimSpace(string(name)))
}

// answered tells who has answered since the last call.
func (p *patron) answered() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	who := map[string]int{}
	for _, name := range p.answers {
		who[name]++
	}
	p.answers = nil
	return who
}

// caughtUp makes replicas ready.
func (h *host) caughtUp(replicas ...string) {
	h.t.Helper()
	for _, r := range replicas {
		h.kubectl("patch", "pod", "web-"+r, "--subresource=status", "--type=strategic",
			"-p", `{"status":{"conditions":[{"type":"`+readyToo+`","status":"True"}]}}`)
	}
}

// showsGroup waits until `kubectl get rg` has the words in its line of the group.
func (h *host) showsGroup(words ...string) {
	h.t.Helper()
	h.eventually(podLimit, fmt.Sprint("the group to show ", words), func() error {
		out, err := h.try("get", "rg", "web", "--no-headers")
		if err != nil {
			return err
		}
		for _, word := range words {
			if !strings.Contains(out, word) {
				return notYet("it shows %q", out)
			}
		}
		return nil
	})
}

// hears waits until each of the replicas has answered.
func (p *patron) hears(h *host, replicas ...string) {
	h.t.Helper()
	who := map[string]int{}
	h.eventually(20*time.Second, fmt.Sprint("answers of ", replicas), func() error {
		for name, n := range p.answered() {
			who[name] += n
		}
		for _, r := range replicas {
			if who["web-"+r] == 0 {
				return notYet("answered: %v", who)
			}
		}
		return nil
	})
}

// TestF113_ReplicaGroupOnRealContainers changes the size of a running group of two under a client that must not see a failed request: old
// and new serve in between, also over a crash of the daemon; then a target that never becomes ready is rolled back at its deadline.
func TestF113_ReplicaGroupOnRealContainers(t *testing.T) {
	h := newHost(t, 7)
	h.start()
	h.importDemo()
	h.eventually(startLimit, "the kinds to be served", func() error { _, err := h.try("get", "rg,sizeclasses"); return err })
	h.kubectl("apply", "-f", "../../examples/replica-group.yaml")
	h.apply(replicaGroup)
	h.waitGroup("r1", "r2")
	h.caughtUp("r1", "r2")
	h.showsGroup("2 x small", "2/2")
	h.eventually(podLimit, "the Service's addresses", func() error {
		p := newPatron(h)
		if p.look(); len(p.addresses) != 2 {
			return notYet("addresses %v", p.addresses)
		}
		return nil
	})
	p := newPatron(h)
	p.loop(p.ask)
	defer func() {
		p.end()
		if len(p.failed) > 0 {
			t.Errorf("%d requests failed, the first: %s", len(p.failed), p.failed[0])
		}
	}()
	t.Run("F119 a change survives a crash", func(t *testing.T) { changesSize(t, h, p) })
	t.Run("F114 rolled back at the deadline", func(t *testing.T) { rollsBack(t, h, p) })
	h.kubectl("wait", "rg/shop", "--for=condition=Ready", "--timeout=60s") // The example of the manual.
}

// waitGroup waits until the containers of replicas run.
func (h *host) waitGroup(replicas ...string) {
	h.t.Helper()
	for _, r := range replicas {
		h.waitPhase("web-"+r, corev1.PodRunning)
	}
}

func changesSize(t *testing.T, h *host, p *patron) {
	h.kubectl("patch", "rg", "web", "--type=merge", "-p", `{"spec":{"size":"large"}}`)
	h.waitGroup("r3", "r4")
	h.caughtUp("r3")
	h.showsGroup("2 x small", "2/2", "2 x large", "1/2", "InProgress", time.Now().UTC().Add(24*time.Hour-time.Minute).Format("2006-01-02T15:"))
	out := h.kubectl("get", "rg")
	t.Log("\n" + out)
	if columns := strings.Fields(out)[:8]; strings.Join(columns, " ") != "NAME REALIZED READY TARGET TARGET-READY STATUS DEADLINE AGE" {
		t.Errorf("columns %v", columns)
	}
	p.answered()
	p.hears(h, "r1", "r2", "r3") // Both shapes serve.
	h.kill()
	p.answered()
	p.hears(h, "r1", "r2", "r3")
	h.start()
	h.showsGroup("2 x small", "2 x large", "InProgress")
	if n := len(h.pods("web")); n != 4 {
		t.Errorf("%d pods after the crash, want 4", n)
	}
	h.caughtUp("r4")
	h.showsGroup("2 x large", "2/2", "Finalized")
	h.eventually(podLimit, "the old replicas to be gone", func() error {
		if pods := h.pods("web"); len(pods) != 2 {
			return notYet("there are %d pods", len(pods))
		}
		return nil
	})
	for _, pod := range h.pods("web") {
		if size := pod.Spec.Containers[0].Resources.Limits.Memory().String(); size != "128Mi" || !isReady(&pod) {
			t.Errorf("pod %s has %s of memory, ready %v", pod.Name, size, isReady(&pod))
		}
	}
	h.described(t, "GracefulReconfiguration", "Deadline:", "Finalized", "ReconfigurationStarted", "ReplicaCreated", "ReconfigurationFinalized", "ReplicaDropped")
}

func rollsBack(t *testing.T, h *host, p *patron) {
	before := map[string]string{}
	for _, pod := range h.pods("web") {
		before[string(pod.UID)] = pod.Name
	}
	begin := time.Now()
	h.kubectl("patch", "rg", "web", "--type=merge", "-p", `{"spec":{"size":"small","reconfiguration":{"timeout":"4s"}}}`)
	h.showsGroup("2 x large", "2 x small", "0/2", "InProgress")
	h.showsGroup("2 x large", "2/2", "TimedOut")
	if took := time.Since(begin); took < 4*time.Second {
		t.Errorf("given up after %v, before the deadline", took)
	}
	h.eventually(podLimit, "the target to be gone", func() error {
		pods := h.pods("web")
		for _, pod := range pods {
			if before[string(pod.UID)] == "" {
				return notYet("%s is there", pod.Name)
			}
		}
		if len(pods) != 2 {
			t.Fatalf("%d replicas are left", len(pods))
		}
		return nil
	})
	p.answered()
	p.hears(h, "r3", "r4")
	h.described(t, "TimedOut", "ReconfigurationTimedOut")
}

// described holds that `kubectl describe` has the words, Events among them, which come a moment later.
func (h *host) described(t *testing.T, words ...string) {
	t.Helper()
	h.eventually(10*time.Second, fmt.Sprint("the description to have ", words), func() error {
		out := h.kubectl("describe", "rg", "web")
		for _, word := range words {
			if !strings.Contains(out, word) {
				return notYet("%q is not in\n%s", word, out)
			}
		}
		return nil
	})
}
