package kube_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/actors/operator/kube"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// TestF044_AnErrorIsRetriedOnItsCurve: after 1, 2, 4 and up to 60 s, each within a fifth of it, and the actor stays the same and alive.
func TestF044_AnErrorIsRetriedOnItsCurve(t *testing.T) {
	run(t, oneMap, func(k *kit) {
		k.take(time.Second)
		k.do(func(context.Context, kube.Key) (kube.Action, error) { return kube.None(), errors.New("refused") })
		k.put("a")
		passes := k.take(6 * time.Minute)
		curve := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60}
		if len(passes) < len(curve)+1 {
			t.Fatalf("only %d passes", len(passes))
		}
		for i, want := range curve {
			got, want := passes[i+1].at.Sub(passes[i].at), want*time.Second
			if got < want*4/5 || got > want*6/5 {
				t.Errorf("after failure %d it waited %v, want about %v", i+1, got, want)
			}
		}
		n, ok := k.system.Look("controllers/test/manifests/ns:a")
		if !ok || n.State != core.Running || n.Generation != 1 || n.Restarts != 0 {
			t.Errorf("the actor is %+v", n)
		}
		if faults := k.system.Faults().Recent(); len(faults) != 0 {
			t.Errorf("faults %v", faults)
		}
	})
}
