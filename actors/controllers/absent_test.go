package controllers_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

// TestP05_AControllerOfAnAbsentKindStartsWhenItAppears runs a controller of custom resources before their definition is there.
func TestP05_AControllerOfAnAbsentKindStartsWhenItAppears(t *testing.T) {
	p := newPlane(t)
	var passes atomic.Int64
	kind := cache.Custom(widgets, "Widget", true)
	system, err := supervision.New(supervision.Config{Clock: supervision.RealClock(), Log: slog.New(slog.DiscardHandler)})
	p.must(err)
	root := catalog.Row("controllers")
	root.Children = []supervision.Spec{kube.Spec(kube.Controller{
		Name: "widgets", Manifests: kind, Reads: []kube.Read{kube.Self(kind)},
		New: func(*cache.Cache) kube.Reconciler {
			return kube.ReconcilerFunc(func(context.Context, kube.Key) (kube.Action, error) {
				passes.Add(1)
				return kube.None(), nil
			})
		},
	}, kube.Deps{Cache: p.cache, Clock: supervision.RealClock(), Log: slog.New(slog.DiscardHandler)})}
	p.must(system.Start(root))
	defer system.Stop(context.Background())
	waits := func() []string {
		n, _ := system.Look("controllers/widgets/kinds")
		return n.JobNames
	}
	p.eventually("it waits for the kind", func() bool { return len(waits()) == 1 && waits()[0] == "WaitingForKind widgets.example.com" })
	p.deploy(deployment("web", 1))
	p.eventually("others run", func() bool { return len(p.pods("default")) == 1 })
	p.defineWidgets()
	p.eventually("the API serves the kind", func() bool { return p.cache.Served(kind) })
	appeared := time.Now()
	p.eventually("it starts", func() bool { return len(waits()) == 0 })
	if took := time.Since(appeared); took > time.Second {
		t.Errorf("it started %v after the kind had appeared", took)
	}
	p.widget("default", "one")
	p.eventually("it reconciles", func() bool { return passes.Load() > 0 })
}
