package catalog

import (
	"bytes"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision/core"
	"github.com/nodeactor/nodeactor/test/golden"
)

// catalogFile is the catalog that a reviewer reads: commit a change of it only when every
// changed cell is meant.
const catalogFile = "testdata/catalog.golden"

func TestGolden(t *testing.T) {
	var got bytes.Buffer
	if err := Print(&got); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, catalogFile, got.Bytes())
}

func TestEveryRowIsComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range everyRow() {
		if err := e.Spec.Validate(); err != nil {
			t.Error(err)
		}
		if seen[e.Spec.Row] {
			t.Errorf("row %s is there twice", e.Spec.Row)
		}
		seen[e.Spec.Row] = true
		if e.Does == "" || e.Class == "" {
			t.Errorf("row %s does not say what it is", e.Spec.Row)
		}
		if structure := e.Class == Structure; structure != (e.Spec.Kind == core.Supervisor) {
			t.Errorf("row %s is a %v of class %s", e.Spec.Row, e.Spec.Kind, e.Class)
		}
		if got := Row(e.Spec.Row); got.Row != e.Spec.Row {
			t.Errorf("Row(%s) is %s", e.Spec.Row, got.Row)
		}
	}
}

// TestSupervisorsOutliveTheirChildren holds that the window of a supervisor never cuts off a
// child that is still within its own.
func TestSupervisorsOutliveTheirChildren(t *testing.T) {
	var start, stop time.Duration
	for _, e := range Rows {
		if e.Spec.Kind == core.Worker {
			start += e.Spec.StartTimeout
			stop += e.Spec.StopTimeout
		}
	}
	const controllers = 12
	stop += controllers * (Row("dispatcher").StopTimeout + Row("reconciler").StopTimeout)
	for _, e := range Rows {
		if e.Spec.Kind == core.Supervisor && (e.Spec.StopTimeout < stop || e.Spec.StartTimeout < start) {
			t.Errorf("%s is given %v to start and %v to stop; its children may need %v and %v", e.Spec.Row, e.Spec.StartTimeout, e.Spec.StopTimeout, start, stop)
		}
	}
}

// TestListenersServeAFreedPortWithinASecond holds the curve of taken addresses.
func TestListenersServeAFreedPortWithinASecond(t *testing.T) {
	for _, e := range Rows {
		cell := e.Spec.Policy[core.BindFailure]
		if e.Class != Listener {
			continue
		}
		if longest := cell.Backoff.Delay(1000, 0); cell.Do != core.DoRestart || longest > time.Second {
			t.Errorf("%s answers a taken port with %v after up to %v", e.Spec.Row, cell.Do, longest)
		}
	}
}

func TestUnknownRowPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an unknown row is served")
		}
	}()
	Row("no such row")
}
