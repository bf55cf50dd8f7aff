package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// metric reads one sample of /metrics; labels may be left out.
func (h *host) metric(prefix string) (float64, error) {
	out, err := h.try("get", "--raw", "/metrics")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(out) {
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			fields := strings.Fields(rest)
			return strconv.ParseFloat(fields[len(fields)-1], 64)
		}
	}
	return 0, fmt.Errorf("there is no metric %s", prefix)
}

func (h *host) inject(path, kind string) error {
	_, err := h.run(podLimit, []byte("{}"), "kubectl", "create", "--raw", "/debug/faults?path="+path+"&kind="+kind, "-f", "-")
	return err
}

// TestPanicIsContained injects a panic into one part after the other: it is counted and
// repaired, and everything else keeps working.
func TestPanicIsContained(t *testing.T) {
	h := newHost(t, 3)
	h.start()
	h.importDemo()
	h.apply(demoDeployment("web", 1, ""))
	p := h.waitPods("web", 1)[0]
	pid := h.containerPID(p)
	for _, path := range []string{
		"node/controllers/deployment/dispatcher", "node/controllers/replicaset/dispatcher", "node/controllers/namespace/dispatcher",
		"node/controllers/gc/dispatcher", "node/controllers/endpointslice/dispatcher",
		"node/controllers/deployment/manifests/default:web", "node/core/scheduler", "node/kubelet/pods/" + string(p.UID),
	} {
		t.Run(path, func(t *testing.T) {
			before, err := h.metric("nodeactor_panics_total")
			must(t, err)
			must(t, h.inject(path, "panic"))
			// Something for every part to do, so that the next message reaches it.
			h.kubectl("annotate", "deployment", "web", "--overwrite", "poke="+strconv.FormatInt(time.Now().UnixNano(), 36))
			h.kubectl("annotate", "pod", p.Name, "--overwrite", "poke="+strconv.FormatInt(time.Now().UnixNano(), 36))
			h.eventually(podLimit, "the panic to be counted", func() error {
				now, err := h.metric("nodeactor_panics_total")
				if err == nil && now <= before {
					return notYet("%v panics are counted", now)
				}
				return err
			})
			h.eventually(podLimit, "every part to be alive", func() error {
				_, err := h.try("get", "--raw", "/livez?verbose")
				return err
			})
		})
	}
	h.kubectl("scale", "deployment/web", "--replicas=2")
	for _, now := range h.waitPods("web", 2) {
		if now.UID == p.UID && (now.Status.ContainerStatuses[0].RestartCount != 0 || h.containerPID(now) != pid) {
			t.Errorf("the container of %s did not live through the panics", p.Name)
		}
	}
}

// TestStalledPartIsNamed: /livez says which part hangs, and only while it does.
func TestStalledPartIsNamed(t *testing.T) {
	h := newHost(t, 3)
	h.start()
	must(t, h.inject("node/core/scheduler", "hang"))
	h.apply(onePod("waits", `command: ["/demo", "sleep", "1s"]`, "Never"))
	h.eventually(podLimit, "/livez to name the scheduler", func() error {
		_, err := h.try("get", "--raw", "/livez?verbose")
		if err == nil {
			return notYet("/livez passes")
		}
		if !strings.Contains(err.Error(), "scheduler") {
			return err
		}
		return nil
	})
	h.eventually(2*podLimit, "the scheduler to be replaced", func() error {
		_, err := h.try("get", "--raw", "/livez")
		return err
	})
}

// TestQuietNodeWritesNothing: at rest the store's revision does not move.
func TestQuietNodeWritesNothing(t *testing.T) {
	h := newHost(t, 4)
	h.start()
	h.importDemo()
	h.apply(demoDeployment("web", 2, ""))
	h.waitPods("web", 2)
	before := h.settle(15 * time.Second)
	time.Sleep(60 * time.Second)
	after, err := h.metric("nodeactor_store_revision")
	must(t, err)
	if before != after {
		t.Errorf("the store's revision moved from %v to %v on a quiet node:\n%s", before, after, h.kubectl("get", "events,leases", "-A"))
	}
}

// settle waits until the revision has not moved for a while: what the last change set off,
// such as the Node's list of images, is done then.
func (h *host) settle(quiet time.Duration) (revision float64) {
	h.t.Helper()
	since := time.Now()
	h.eventually(podLimit, "the node to come to rest", func() error {
		now, err := h.metric("nodeactor_store_revision")
		if now != revision {
			revision, since = now, time.Now()
		}
		if err == nil && time.Since(since) < quiet {
			return notYet("revision %v is %s old", now, time.Since(since))
		}
		return err
	})
	return revision
}
