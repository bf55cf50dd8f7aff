package kube

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"k8s.io/client-go/tools/record"

	"github.com/nodeactor/nodeactor/supervision"
)

// TestP03_WhoDoesWellBeforeTheReporterLooksIsNotAccused: a pass that ends well before it is known what an earlier life of the process left on
// its object counts all the same.
func TestP03_WhoDoesWellBeforeTheReporterLooksIsNotAccused(t *testing.T) {
	inWard(t, func(w *ward) {
		w.put("bad", 1)
		w.do(panicFor("bad"))
		w.start()
		w.passes("bad", 5*time.Minute)
		w.wantCondition("bad", ConditionHealthy, "False", ReasonCrashLoop)
		deps := Deps{Cache: w.cache, Clock: supervision.RealClock(), Log: slog.New(slog.DiscardHandler)}
		next := NewReporter(deps, patcher{w: w}, nil)
		next.events = record.NewFakeRecorder(10)
		next.serve(&Controller{Name: "test", Manifests: deploymentKind})
		next.well("test", Key{Namespace: "ns", Name: "bad"})
		if err := next.inherit(context.Background(), func() {}); err != nil {
			t.Fatal(err)
		}
		if !next.tellAll(context.Background(), next.dirty(), func() {}) {
			t.Fatal("nothing could be told")
		}
		w.passes("bad", 0)
		w.wantCondition("bad", ConditionHealthy, "True", ReasonRecovered)
		if n := next.complaining.Load(); n != 0 {
			t.Errorf("%d objects are still complained of", n)
		}
	})
}
