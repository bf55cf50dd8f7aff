package kube

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/supervision/core"
)

var widgets = cache.Custom(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, "Widget", true)

const (
	definitionKey = "/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com"
	definitionOf  = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com","uid":"d"},
		"spec":{"versions":[{"name":"VERSION","served":true}]},"status":{"conditions":[{"type":"Established","status":"STATUS"}]}}`
)

func (w *ward) define(version, established string) {
	text := strings.NewReplacer("VERSION", version, "STATUS", established).Replace(definitionOf)
	w.source.PutBytes(definitionKey, []byte(text))
	synctest.Wait()
}

// TestP05_AnAbsentKindHoldsUpNobodyElse starts a controller that reads a kind which nobody serves yet.
func TestP05_AnAbsentKindHoldsUpNobodyElse(t *testing.T) {
	inWard(t, func(w *ward) {
		w.put("a", 1)
		w.kinds = []Read{{Kind: widgets, Keys: func(_ *cache.Cache, change cache.Change) []Key {
			return []Key{{Namespace: change.Meta().Namespace, Name: change.Meta().Name}}
		}}}
		w.start() // returns, so nothing above waits
		w.passes("a", 10*time.Minute)
		n := w.node("controllers/test/kinds")
		if n.State != core.Running || len(n.JobNames) != 1 || n.JobNames[0] != waitingFor+"widgets.example.com" {
			t.Errorf("the watch of the kind is %v and does %q", n.State, n.JobNames)
		}
		if d := w.node("controllers/test/dispatcher"); d.State != core.Running || d.Hung {
			t.Errorf("the dispatcher is %v, hung %v", d.State, d.Hung)
		}
		if len(w.reconciled["a"]) != 0 {
			t.Error("a pass ran without the kind it reads")
		}
		w.define("v1", "False")
		w.define("v2", "True")
		if n := w.passes("a", 5*time.Second); n != 0 {
			t.Error("a pass ran before the definition was established")
		}
		appears := time.Now()
		w.define("v1", "True")
		w.passes("a", time.Second)
		if times := w.reconciled["a"]; len(times) == 0 || times[0].Sub(appears) > time.Second {
			t.Fatalf("passes at %v, the kind appeared at %v", times, appears)
		}
		if n := w.node("controllers/test/kinds"); len(n.JobNames) != 0 {
			t.Errorf("it still does %q", n.JobNames)
		}
		before := len(w.reconciled["a"])
		w.source.PutBytes(widgets.Key("ns", "a"), []byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"namespace":"ns","name":"a","uid":"w"}}`))
		w.passes("a", time.Second)
		if len(w.reconciled["a"]) == before {
			t.Error("a change of the custom kind wakes nobody")
		}
		if len(w.system.Faults().Recent()) != 0 {
			t.Errorf("faults %v", w.system.Faults().Recent())
		}
	})
}
