package operator_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
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
