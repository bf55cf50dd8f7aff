package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
	"github.com/nodeactor/nodeactor/test/golden"
)

const (
	overridden = "testdata/override.golden"
	refusals   = "testdata/refused.golden"
	fullCurve  = `"backoff":{"initial":"1s","factor":3,"cap":"30s","jitter":0,"reset":"5m"}`
)

func branch(row, id string, children ...supervision.Spec) supervision.Spec {
	s := Row(row)
	s.ID, s.Children = id, children
	return s
}

// smallTree has one of each shape.
func smallTree() supervision.Spec {
	pool, template := Row("manifests"), Row("reconciler")
	pool.Template = &template
	return branch("node", "node",
		branch("store", "store", Row("engine"), Row("maintenance")),
		branch("controllers", "controllers", branch("controller", "deployment", pool, Row("dispatcher"))),
		branch("core", "core", Row("scheduler")))
}

// written reads overrides as a configuration does.
func written(t *testing.T, text string) []Override {
	t.Helper()
	var list []Override
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	for i := range list {
		list[i].Source = fmt.Sprintf("c.yaml: faultPolicies[%d]", i)
	}
	return list
}

func all(do string) string {
	return fmt.Sprintf(`{"panic":%[1]s,"hang":%[1]s,"errorReturn":%[1]s,"bindFailure":%[1]s}`, do)
}

// TestOverridesAreApplied holds that a path beats a row whatever their order, that members of
// a pool are reached, and that the printed table says where each value comes from.
func TestOverridesAreApplied(t *testing.T) {
	root := smallTree()
	list := written(t, `[
		{"path":"node/store/engine","on":`+all(`{"do":"escalate"}`)+`,"windows":{"hang":"45s"}},
		{"row":"engine","on":`+all(`{"do":"stop"}`)+`,"windows":{"start":"3m"}},
		{"path":"node/controllers/deployment/manifests/*","on":`+all(`{"do":"park",`+fullCurve+`}`)+`},
		{"path":"node/store/maintenance","true":`+all(`{"do":"escalate"}`)+`},
		{"path":"node/controllers","restarts":{"burst":{"max":7,"within":"90s"},"sustained":{"max":20,"within":"3h"}}},
		{"row":"dispatcher","on":`+all(`{"do":"restart"}`)+`}]`)
	if err := Apply(&root, list); err != nil {
		t.Fatal(err)
	}
	engine := root.Children[0].Children[0]
	if engine.Policy[core.Hang].Do != core.DoEscalate || engine.HangAfter != 45*time.Second || engine.StartTimeout != 3*time.Minute {
		t.Errorf("the engine is %+v", engine.ChildSpec)
	}
	group := root.Children[1].Children[0]
	if cell := group.Children[0].Template.Policy[core.Panic]; cell.Do != core.DoPark || cell.Backoff.Cap != 30*time.Second {
		t.Errorf("the members' cell is %+v", cell)
	}
	if got, want := group.Children[1].Policy, Row("dispatcher").Policy; got != want {
		t.Errorf("restart without a back-off is not the catalog's own: %+v", got)
	}
	if in := root.Children[1].Group.Intensity; in.Max != 7 || in.Within != 90*time.Second {
		t.Errorf("the budget is %+v", in)
	}
	if Row("engine").Policy[core.Hang].Do != core.DoRestart {
		t.Error("the catalog itself was changed")
	}
	var out bytes.Buffer
	if err := PrintEffective(&out, Describe(&root, list)); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, overridden, out.Bytes())
}

// refused are overrides that cannot be honoured; the golden file has what is said of each.
func refused() []string {
	of := func(target, rest string) string { return fmt.Sprintf(`[{%s,%s}]`, target, rest) }
	path := func(path, rest string) string { return of(`"path":"`+path+`"`, rest) }
	scheduler := func(rest string) string { return path("node/core/scheduler", rest) }
	cells := func(panic, bind string) string {
		return `"on":{"panic":` + panic + `,"hang":{"do":"stop"},"errorReturn":{"do":"stop"},` + bind + `:{"do":"stop"}}`
	}
	valid := cells(`{"do":"stop"}`, `"bindFailure"`)
	panics := func(cell string) string { return scheduler(cells(cell, `"bindFailure"`)) }
	curve := func(old, new string) string {
		return panics(`{"do":"restart",` + strings.Replace(fullCurve, old, new, 1) + `}`)
	}
	return []string{
		`[{"on":{}}]`,
		of(`"path":"node/core/scheduler","row":"scheduler"`, valid),
		path("node/core/schedular", valid), path("scheduler", valid), path("node/controllers/deployments/dispatcher", valid), path("something/else", valid),
		path("node/controllers/deployment/manifests/default:web", valid),
		of(`"row":"reconciller"`, valid),
		`[{"row":"reconciler",` + valid + `},{"row":"reconciler","windows":{"hang":"1m"}}]`,
		`[{"path":"node/core/scheduler"}]`,
		scheduler(`"on":{"panic":{"do":"stop"},"hang":{"do":"stop"},"errorReturn":{"do":"stop"}}`),
		scheduler(cells(`{"do":"stop"}`, `"bindfailure"`)),
		panics(`{"do":"restrat"}`), panics(`{}`), panics(`{"do":"stop",` + fullCurve + `}`),
		path("node", valid),
		path("node/store", cells(`{"do":"escalate"}`, `"bindFailure"`)+`},{"path":"node/store/engine","on":{}`),
		curve(`"initial":"1s",`, ""), curve(`"factor":3,`, ""), curve(`"cap":"30s",`, ""), curve(`"jitter":0,`, ""), curve(`,"reset":"5m"`, ""),
		curve(`"30s"`, `"100ms"`), curve(`"30s"`, "30"), curve(`:3`, ":0.5"), curve(`"jitter":0`, `"jitter":1`),
		scheduler(`"restarts":{"burst":{"max":1,"within":"1m"}}`),
		path("node/controllers", `"restarts":{"burst":{"max":9,"within":"1s"},"sustained":{"max":5,"within":"1h"}}`),
		path("node/store", `"restarts":{}`), path("node/store", `"restarts":{"burst":{"max":5000,"within":"1h"}}`), path("node/store", `"restarts":{"burst":{"max":5}}`),
		scheduler(`"windows":{}`), scheduler(`"windows":{"hang":"1us"}`), scheduler(`"windows":{"stop":"soon"}`), scheduler(`"windows":{"stop":"40m"}`),
		path("node/store", `"windows":{"start":"1m"}`),
	}
}

// TestRefusals prints what is said of each wrong override: the file is what a user reads.
func TestRefusals(t *testing.T) {
	var out bytes.Buffer
	for _, text := range refused() {
		root, before := smallTree(), smallTree()
		err := Apply(&root, written(t, text))
		if !errors.Is(err, ErrOverride) {
			t.Errorf("accepted or of the wrong kind: %s: %v", text, err)
		}
		fmt.Fprintf(&out, "%s\n", text)
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintf(&out, "    %s\n", strings.TrimSpace(line))
		}
		same := true
		each(&root, "node", func(path string, s *supervision.Spec) {
			each(&before, "node", func(p string, b *supervision.Spec) { same = same && (p != path || s.ChildSpec == b.ChildSpec) })
		})
		if !same {
			t.Errorf("refused and yet changed: %s", text)
		}
	}
	golden.Check(t, refusals, out.Bytes())
}

// TestUnknownFieldsAreRefused holds that a misspelt setting is not passed over.
func TestUnknownFieldsAreRefused(t *testing.T) {
	for _, text := range []string{`[{"paht":"node"}]`, `[{"path":"node","windows":{"strat":"1s"}}]`, `[{"on":{"panic":{"do":"stop","backof":{}}}}]`} {
		var list []Override
		if err := json.Unmarshal([]byte(text), &list); err == nil || !strings.Contains(err.Error(), "unknown field") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestNearest(t *testing.T) {
	paths := []string{"node", "node/core/scheduler", "node/controllers/deployment", "node/controllers/deployment/dispatcher", "node/kubelet/listener", "node/api/listeners/listener"}
	for word, want := range map[string]string{
		"node/core/shceduler":        "node/core/scheduler",
		"Scheduler":                  "node/core/scheduler",
		"deployment":                 "node/controllers/deployment",
		"node/controler/deployment/": "node/controllers/deployment",
		"listener":                   "node/kubelet/listener node/api/listeners/listener",
		"zzz":                        "",
		"":                           "",
	} {
		if got := strings.Join(Nearest(word, paths), " "); got != want {
			t.Errorf("%q gives %q, want %q", word, got, want)
		}
	}
}
