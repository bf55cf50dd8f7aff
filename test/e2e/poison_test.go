package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// condition reads a condition of an object as STATUS REASON MESSAGE.
func (h *host) condition(object, kind string) string {
	out, err := h.try("get", object, "-o", fmt.Sprintf(`jsonpath={range .status.conditions[?(@.type=="%s")]}{.status} {.reason} {.message}{end}`, kind))
	if err != nil {
		return err.Error()
	}
	return out
}

func (h *host) waitCondition(object, kind, begin string) {
	h.t.Helper()
	h.eventually(podLimit, fmt.Sprintf("%s of %s to be %s", kind, object, begin), func() error {
		if c := h.condition(object, kind); !strings.HasPrefix(c, begin) {
			return notYet("it is %q", c)
		}
		return nil
	})
}

// TestP03_APoisonDeploymentParksAloneAndHeals: a Deployment whose reconciler always panics is told on it, survives a crash of the daemon
// without a loop, and works at once when its cause is taken away.
func TestP03_APoisonDeploymentParksAloneAndHeals(t *testing.T) {
	h := newHost(t, 3)
	h.start()
	poison := strings.Replace(demoDeployment("bad", 0, ""), "labels: {app: bad}}", `annotations: {nodeactor.io/inject-fault: panic}}`, 1)
	h.apply(poison)
	h.waitCondition("deployment/bad", "ReconcilerHealthy", "False Restarting deployment: Panic in job pass (stack ")
	if events := h.kubectl("events", "--for", "deployment/bad"); !strings.Contains(events, "ReconcilerBackOff") || !strings.Contains(events, "stack ") {
		t.Errorf("its events are\n%s", events)
	}
	h.apply(demoDeployment("good", 0, ""))
	h.eventually(podLimit, "another Deployment to be reconciled", func() error { return h.observed("good") })

	h.kill()
	h.start()
	begin := time.Now()
	h.eventually(podLimit, "another Deployment to be reconciled", func() error { return h.observed("good") })
	time.Sleep(2 * time.Second)
	if panics, err := h.metric("nodeactor_panics_total"); err != nil || panics < 1 || panics > 4+time.Since(begin).Seconds()/2 {
		t.Errorf("%v panics within %v of the restart (%v)", panics, time.Since(begin), err)
	}
	if c := h.condition("deployment/bad", "ReconcilerHealthy"); !strings.HasPrefix(c, "False ") {
		t.Errorf("after the restart its condition is %q", c)
	}
	h.kubectl("annotate", "deployment", "bad", "nodeactor.io/inject-fault-")
	mended := time.Now()
	h.eventually(podLimit, "the Deployment to be reconciled", func() error { return h.observed("bad") })
	if took := time.Since(mended); took > 5*time.Second {
		t.Errorf("it was reconciled %v after it was mended", took)
	}
	h.waitCondition("deployment/bad", "ReconcilerHealthy", "True Recovered")
}

// observed tells whether the controller of Deployments has seen the newest generation of one.
func (h *host) observed(name string) error {
	out, err := h.try("get", "deployment", name, "-o", "jsonpath={.metadata.generation} {.status.observedGeneration}")
	if err != nil {
		return err
	}
	if generation, seen, _ := strings.Cut(out, " "); generation != seen {
		return notYet("generation %s, observed %q", generation, seen)
	}
	return nil
}

// TestP56_PodsThatTheKubeletRejectsPauseTheirOwner: the kubelet refuses pods that ask for more than there is; their set pauses before it
// has made twenty too many.
func TestP56_PodsThatTheKubeletRejectsPauseTheirOwner(t *testing.T) {
	h := newHost(t, 4)
	h.start()
	h.apply(strings.NewReplacer("    spec:\n", "    spec:\n      nodeName: host-a\n", "cpu: 10m", "cpu: 5000").Replace(demoDeployment("huge", 2, "")))
	begin := time.Now()
	set := ""
	h.eventually(podLimit, "the set to pause", func() error {
		out, err := h.try("get", "replicasets", "-l", "app=huge", "-o", "name")
		if set = strings.TrimSpace(out); err != nil || set == "" {
			return notYet("there is no set: %v", err)
		}
		if c := h.condition(set, "HotLoop"); !strings.HasPrefix(c, "True CreateReject ") || !strings.Contains(c, "the kubelet of host-a (OutOfcpu)") {
			return notYet("HotLoop is %q", c)
		}
		return nil
	})
	took, pods := time.Since(begin), strings.Count(h.kubectl("get", "pods", "-l", "app=huge", "-o", "name"), "\n")
	t.Logf("paused after %v and %d pods", took.Round(time.Millisecond), pods)
	if took > 10*time.Second || pods > 2+20 {
		t.Errorf("it took %v and %d pods", took, pods)
	}
	if events := h.kubectl("events", "--for", set); !strings.Contains(events, "HotLoop") {
		t.Errorf("its events are\n%s", events)
	}
	h.apply(demoDeployment("good", 0, ""))
	h.eventually(podLimit, "another Deployment to be reconciled", func() error { return h.observed("good") })
}
