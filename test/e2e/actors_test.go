package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/actors/apiserver/supervisionapi"
)

// overridden is a configuration that changes the policy of one actor.
const overridden = `
faultPolicies:
- path: node/core/scheduler
  on:
    panic: {do: restart, backoff: {initial: 20ms, factor: 2, cap: 1s, jitter: 0, reset: 1m}}
    hang: {do: restart}
    errorReturn: {do: restart}
    bindFailure: {do: restart}
  windows: {hang: 45s}
`

// TestActorsAsObjects looks at the tree with kubectl: tables, single objects, descriptions, what a
// fault changes, watches, and the refusal of writes.
func TestActorsAsObjects(t *testing.T) {
	h := newHost(t, 9)
	config := filepath.Join(h.dir, "config.yaml")
	must(t, os.WriteFile(config, []byte(overridden), 0o600))
	h.start("--config", config)

	shows(t, h.kubectl("api-resources", "--api-group", supervisionapi.GroupName), "actors", "act", "Actor", "faultpolicies", "fp", "FaultPolicy")
	shows(t, h.kubectl("explain", "actor.status"), "lastFault", "has spent its budget")
	shows(t, h.kubectl("get", "actors"), "PATH", "LASTFAULT", "node:api:server", "node:controllers:namespace:manifests:default", "Running")
	shows(t, h.kubectl("get", "act", "node:core:scheduler", "-o", "wide"), "STACK", "NEXTTRY", "CPU")
	shows(t, h.kubectl("describe", "actor", "node:api:server"), "Path:", "node/api/server", "Conditions:", "Events:")
	shows(t, h.kubectl("get", "faultpolicies"), "STRATEGY", "rest_for_one", "node:kubelet:pods:*", "escalate")
	var policy supervisionapi.FaultPolicy
	must(t, h.get(&policy, "fp", "node:core:scheduler"))
	if !policy.Status.Overridden || policy.Spec.Reactions.Panic.Backoff.Initial.Duration != 20*time.Millisecond || policy.Spec.HangAfter.Duration != 45*time.Second {
		t.Errorf("the policy in force is %+v, %+v", policy.Spec, policy.Status)
	}
	h.seesFault()
	h.refusesWrites()
}

// seesFault injects a panic: objects, waits and metrics tell of it and of the repair.
func (h *host) seesFault() {
	h.t.Helper()
	var before, after supervisionapi.Actor
	must(h.t, h.get(&before, "actor", "node:core:scheduler"))
	must(h.t, h.inject("node/core/scheduler", "panic"))
	h.eventually(podLimit, "the scheduler's new life", func() error {
		err := h.get(&after, "actor", "node:core:scheduler")
		if err == nil && (after.Status.Generation == before.Status.Generation || after.Status.State != supervisionapi.Running) {
			return notYet("it is %s, generation %d", after.Status.State, after.Status.Generation)
		}
		return err
	})
	f := after.Status.LastFault
	if f == nil || f.Kind != "Panic" || f.Generation != before.Status.Generation || f.StackHash == "" || after.UID != before.UID {
		h.t.Errorf("after the panic the actor is %+v, with %+v", after, f)
	}
	shows(h.t, h.kubectl("get", "actors", "--field-selector", "spec.row=scheduler"), "Panic (", "ago)")
	shows(h.t, h.kubectl("wait", "--for=condition=Ready", "actor/node:core:scheduler", "--timeout=30s"), "condition met")
	for _, m := range []string{`nodeactor_faults_total{kind="Panic",path="core/scheduler"}`, `nodeactor_repair_seconds_count{kind="Panic",row="scheduler"}`} {
		if n, err := h.metric(m); err != nil || n != 1 {
			h.t.Errorf("%s is %v, %v", m, n, err)
		}
	}
}

// refusesWrites holds that nothing of the tree can be written, and that one is told what to do
// instead.
func (h *host) refusesWrites() {
	h.t.Helper()
	for want, args := range map[string][]string{
		"nodeactor restart PATH":          {"delete", "actor", "node:core:scheduler", "--wait=false"},
		"set faultPolicies":               {"patch", "fp", "node:core:scheduler", "--type=merge", "-p", `{"spec":{"restart":"temporary"}}`},
		"did you mean node:core:schedule": {"get", "actor", "node:schedler"},
	} {
		if out, err := h.try(args...); err == nil || !strings.Contains(out, want) {
			h.t.Errorf("%v: got %q, %v; want %q", args, out, err, want)
		}
	}
}

// shows holds that each part is in the text.
func shows(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is missing in:\n%s", p, text)
		}
	}
}
