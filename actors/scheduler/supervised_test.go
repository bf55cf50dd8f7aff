package scheduler

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

// TestSurvivesFaults: whatever fault ends a generation, the next one finds everything again and binds what is left.
func TestSurvivesFaults(t *testing.T) {
	for _, fault := range []supervision.FaultKind{supervision.Panic, supervision.ErrorReturn, supervision.Hang} {
		t.Run(fault.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				system := supervise(t, w)
				w.putNode(testNode("n", "64"))
				serial := 0
				more := func() {
					for range 5 {
						serial++
						w.putPod(withCPU(testPod(fmt.Sprintf("p%03d", serial), 0), "10m"))
					}
				}
				more()
				pass(time.Second)
				for range 3 {
					if err := system.Inject("node/scheduler", fault); err != nil {
						t.Fatal(err)
					}
					more()
					pass(2 * time.Minute)
				}
				if got := w.bound(); got != serial {
					t.Errorf("%d of %d pods are bound after three faults", got, serial)
				}
				if got := len(system.Faults().Recent()); got != 3 {
					t.Errorf("%d faults are on record, want 3", got)
				}
			})
		})
	}
}

func supervise(t *testing.T, w *world) *supervision.System {
	system, err := supervision.New(supervision.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	root := catalog.Row("node")
	root.Children = []supervision.Spec{Spec(Deps{Source: w, Client: client{world: w}})}
	if err := system.Start(root); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		system.Stop(ctx)
	})
	return system
}
