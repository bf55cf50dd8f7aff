package node

import (
	"slices"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// Bounds of what one worker that never stops failing may cost.
const (
	// mostInABurst bounds its starts until the node gives up, if every budget is used up at once.
	mostInABurst = 5000
	// mostPerSecond bounds its starts per second over the window of the root.
	mostPerSecond = 1.0
)

// TestBudgetsMultiplySensibly computes, for every worker of the real tree, what the budgets above
// it come to together: each level starts the next anew with a fresh budget, so they multiply.
func TestBudgetsMultiplySensibly(t *testing.T) {
	root, err := Blueprint(Config{DataDir: t.TempDir(), NodeName: "n"}.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	worst, perSecond, workers := 0.0, 0.0, 0
	eachWorker(&root, nil, func(w *supervision.Spec, above []*supervision.Spec) {
		burst, sustained := 1.0, 1.0
		for i, g := range above {
			burst *= float64(g.Group.Intensity.Max + 1)
			sustained *= float64(g.Group.Sustained.Max + 1)
			if i > 0 && rate(above[i-1].Group.Sustained) >= rate(g.Group.Sustained) {
				t.Errorf("%s bears no more restarts in the long run than %s above it", g.ID, above[i-1].ID)
			}
		}
		sustained /= root.Group.Sustained.Within.Seconds()
		if burst > mostInABurst || sustained > mostPerSecond {
			t.Errorf("%s may start %.0f times in a burst and %.2f times a second", w.ID, burst, sustained)
		}
		worst, perSecond, workers = max(worst, burst), max(perSecond, sustained), workers+1
	})
	if workers < 20 {
		t.Errorf("only %d workers were found", workers)
	}
	t.Logf("%d workers; at most %.0f starts in a burst, %.2f a second in the long run", workers, worst, perSecond)
}

// eachWorker calls f for each worker outside of pools, with the groups above it from the root.
func eachWorker(s *supervision.Spec, above []*supervision.Spec, f func(w *supervision.Spec, above []*supervision.Spec)) {
	above = append(slices.Clone(above), s)
	for i := range s.Children {
		switch c := &s.Children[i]; {
		case c.Kind == core.Worker:
			f(c, above)
		case c.Template == nil:
			eachWorker(c, above, f)
		}
	}
}

func rate(in core.Intensity) float64 { return float64(in.Max) / in.Within.Seconds() }

// TestOneBadChildTakesNobodyDown holds that the groups of many equal children bear one of them
// that fails for ever, at whatever pace its back-off has.
func TestOneBadChildTakesNobodyDown(t *testing.T) {
	root, err := Blueprint(Config{DataDir: t.TempDir(), NodeName: "n"}.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	eachWorker(&root, nil, func(w *supervision.Spec, above []*supervision.Spec) {
		g := above[len(above)-1]
		if !slices.Contains([]string{"listeners", "core", "controller", "kubelet"}, g.Row) {
			return
		}
		seen[g.Row] = true
		for kind, cell := range w.Policy {
			if cell.Do != core.DoRestart || core.FaultKind(kind) == core.BindFailure {
				continue
			}
			for _, in := range []core.Intensity{g.Group.Intensity, g.Group.Sustained} {
				if n := mostRestarts(cell.Backoff, in.Within); n > in.Max {
					t.Errorf("%s alone restarts %d times in %v, but %s bears %d", w.ID, n, in.Within, g.ID, in.Max)
				}
			}
		}
	})
	if len(seen) != 4 {
		t.Errorf("only %v were found", seen)
	}
}

// mostRestarts is how often a child that fails at once each time restarts within a window.
func mostRestarts(b core.Backoff, within time.Duration) (n int) {
	for at := time.Duration(0); at < within; n++ {
		at += b.Delay(n+1, 1)
	}
	return n
}
