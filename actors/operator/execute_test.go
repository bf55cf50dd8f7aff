package operator_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeactor/nodeactor/actors/operator"
	"github.com/nodeactor/nodeactor/actors/operator/storage"
	"github.com/nodeactor/nodeactor/cluster/lease"
)

// TestF100_ExecuteEndsInOrder runs for real, on a file: when the context ends, passes are called off, the leases are free and a second run
// goes on with what is stored.
func TestF100_ExecuteEndsInOrder(t *testing.T) {
	store, err := storage.OpenBolt(filepath.Join(t.TempDir(), "manifests.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for run := 1; run <= 2; run++ {
		ctx, stop := context.WithCancel(context.Background())
		entered := make(chan struct{}, 10)
		plane, err := operator.NewControlPlane(operator.Func[site](func(ctx context.Context, s *state) (operator.Action, error) {
			entered <- struct{}{}
			if s.Manifest.Name == "slow" {
				<-ctx.Done()
				return operator.None(), ctx.Err()
			}
			return build(ctx, s)
		}), operator.OperatorConfig{}, store, operator.WithNodeName("a"), operator.WithLogger(quiet))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"quick", "slow"} {
			if err := plane.AddManifest(ctx, name, site{Pages: run}); err != nil {
				t.Fatal(err)
			}
		}
		go func() {
			for range 2 {
				<-entered
			}
			stop()
		}()
		began := time.Now()
		if err := plane.Execute(ctx); err != nil {
			t.Fatalf("run %d: %v", run, err)
		}
		if took := time.Since(began); took > lease.StopWait {
			t.Errorf("run %d took %s", run, took)
		}
		check(t, store, plane, run)
	}
}

// check looks at what a run has left.
func check(t *testing.T, store storage.Store, plane *operator.ControlPlane[site], run int) {
	t.Helper()
	_, err := store.Leases(context.Background(), func(name string, l lease.Stored) bool {
		if !l.Free() || l.Epoch != uint64(run) {
			t.Errorf("run %d left %s at %+v", run, name, l)
		}
		return true
	})
	quick, err1 := plane.Get(context.Background(), "quick")
	slow, err2 := plane.Get(context.Background(), "slow")
	if err := errors.Join(err, err1, err2); err != nil {
		t.Fatal(err)
	}
	if string(quick.Status.Value) != fmt.Sprintf(`{"pages":%d}`, run) || slow.Status.Attempts != 0 || slow.Status.Phase != operator.PhasePending {
		t.Errorf("run %d left %+v and %+v", run, quick.Status, slow.Status)
	}
}

// TestF100_APassThatWillNotEndIsNamed: the stop is bounded, and tells what did not go.
func TestF100_APassThatWillNotEndIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(context.Background())
		release := make(chan struct{})
		plane, err := operator.NewControlPlane(operator.Func[site](func(context.Context, *state) (operator.Action, error) {
			stop()
			<-release
			return operator.None(), nil
		}), operator.OperatorConfig{}, storage.Memory(), operator.WithLogger(quiet))
		if err == nil {
			err = plane.AddManifest(ctx, "one", site{})
		}
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err = plane.Execute(ctx)
		if took := time.Since(began); took < lease.StopWait || took > time.Minute {
			t.Errorf("it took %s", took)
		}
		if !errors.Is(err, operator.ErrUnstopped) || !strings.Contains(err.Error(), "manifests/one") {
			t.Errorf("the stop said %v", err)
		}
		close(release)
	})
}

// TestF100_APlaneIsExecutedOnceAtATime: a second execution is refused at once and disturbs nothing; when the first has ended there may be
// another, which goes on at once.
func TestF100_APlaneIsExecutedOnceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var passes, at, most atomic.Int32
		var faults strings.Builder
		log := slog.New(slog.NewTextHandler(&faults, &slog.HandlerOptions{Level: slog.LevelError}))
		store := storage.Memory()
		plane, err1 := operator.NewControlPlane(operator.Func[site](func(ctx context.Context, s *state) (operator.Action, error) {
			passes.Add(1)
			most.Store(max(most.Load(), at.Add(1)))
			defer at.Add(-1)
			if s.Manifest.Spec.Pages == 1 {
				<-ctx.Done()
				return operator.None(), ctx.Err()
			}
			return build(ctx, s)
		}), operator.OperatorConfig{}, store, operator.WithNodeName("a"), operator.WithBoot("1"), operator.WithLogger(log))
		other, err2 := operator.NewControlPlane(operator.Func[ink](dry), operator.OperatorConfig{}, store, operator.WithLogger(quiet))
		if err := errors.Join(err1, err2, plane.AddManifest(t.Context(), "one", site{Pages: 1})); err != nil {
			t.Fatal(err)
		}
		stop := executed(t, plane)
		for _, planes := range [][]operator.Plane{{plane}, {other, plane}, {plane, other}} {
			began := time.Now()
			ctx, enough := context.WithTimeout(t.Context(), time.Second)
			if err := operator.Execute(ctx, planes...); !errors.Is(err, operator.ErrKindTaken) || !strings.Contains(err.Error(), "Site") {
				t.Errorf("executed while it executes: %v", err)
			}
			enough()
			if took := time.Since(began); took != 0 {
				t.Errorf("it was refused after %s", took)
			}
		}
		executed(t, other)()
		if v, err := plane.Get(t.Context(), "one"); err != nil || v.Status.Phase != operator.PhaseReconciling || plane.Stats().Running != 1 {
			t.Errorf("the first execution is at %+v, %v, %+v", v.Status, err, plane.Stats())
		}
		stop()
		for run := 2; run <= 3; run++ {
			if err := plane.AddManifest(t.Context(), "one", site{Pages: run}); err != nil {
				t.Fatal(err)
			}
			before := passes.Load()
			stop := executed(t, plane)
			v, err := plane.Get(t.Context(), "one")
			if err != nil || v.Status.Phase != operator.PhaseReady || string(v.Status.Value) != fmt.Sprintf(`{"pages":%d}`, run) || passes.Load() != before+1 {
				t.Errorf("run %d, after %d more passes: %+v, %v", run, passes.Load()-before, v.Status, err)
			}
			stop()
		}
		if most.Load() != 1 || faults.Len() > 0 {
			t.Errorf("%d passes of one manifest ran at a time, and in the log is %s", most.Load(), &faults)
		}
	})
}

// executed executes a plane for some seconds, and on until stop is called.
func executed(t *testing.T, plane operator.Plane) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- plane.Execute(ctx) }()
	time.Sleep(3 * time.Second)
	return func() {
		t.Helper()
		cancel()
		if err := <-over; err != nil {
			t.Errorf("the execution ended with %v", err)
		}
	}
}
