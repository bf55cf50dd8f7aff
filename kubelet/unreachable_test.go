package kubelet

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	kruntime "github.com/nodeactor/nodeactor/kubelet/runtime"
	"github.com/nodeactor/nodeactor/store/ledger"
	"github.com/nodeactor/nodeactor/supervision"
)

// unreachable is an API that nobody reaches; it counts who tries.
type unreachable struct{ asked atomic.Int64 }

// RoundTrip implements http.RoundTripper.
func (u *unreachable) RoundTrip(*http.Request) (*http.Response, error) {
	u.asked.Add(1)
	return nil, errors.New("connection refused")
}

// TestP07_ADayWithoutTheAPICostsNothing runs what a kubelet asks the API for, with nobody answering for a day: no more goroutines, no more
// memory, and no more attempts in the last hour than in the first.
func TestP07_ADayWithoutTheAPICostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &unreachable{}
		system := lonelyKubelet(t, api)
		defer system.Stop(context.Background())
		time.Sleep(time.Hour)
		synctest.Wait()
		attempts, goroutines, heap := api.asked.Load(), runtime.NumGoroutine(), heapInUse()
		time.Sleep(22 * time.Hour)
		before := api.asked.Load()
		time.Sleep(time.Hour)
		synctest.Wait()
		lastHour := api.asked.Load() - before
		t.Logf("%d attempts in the first hour, %d in the last; %d goroutines, then %d; heap %d kB, then %d kB",
			attempts, lastHour, goroutines, runtime.NumGoroutine(), heap>>10, heapInUse()>>10)
		if now := runtime.NumGoroutine(); now > goroutines {
			t.Errorf("%d goroutines after an hour, %d after a day", goroutines, now)
		}
		if now := heapInUse(); now > heap+heap/4+1<<20 {
			t.Errorf("%d bytes of heap after an hour, %d after a day", heap, now)
		}
		if lastHour > attempts || lastHour > 2*3600 {
			t.Errorf("%d attempts in the first hour, %d in the last", attempts, lastHour)
		}
		if faults := system.Faults().Recent(); len(faults) != 0 {
			t.Errorf("an API that is away is a fault: %v", faults[0])
		}
		if letters := system.DeadLetters(); letters != 0 {
			t.Errorf("%d dead letters", letters)
		}
	})
}

// emptyRuntime runs nothing.
type emptyRuntime struct{ kruntime.Runtime }

// List implements runtime.Runtime.
func (emptyRuntime) List(context.Context) ([]kruntime.PodRecord, error) { return nil, nil }

// lonelyKubelet starts the children of a kubelet that talk to the API, and no other.
func lonelyKubelet(t *testing.T, api http.RoundTripper) *supervision.System {
	t.Helper()
	dir := t.TempDir()
	book, err := ledger.Open(filepath.Join(dir, "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = book.Close() })
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "https://nobody", Transport: api, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	root := New(Deps{Config: Config{NodeName: testNode, DataDir: dir, MaxPods: 10}, Client: client, Runtime: emptyRuntime{}, Ledger: book, Log: log}).Spec()
	asks := []string{"pods", "sync", "node-status", "node-lease"}
	root.Children = slices.DeleteFunc(root.Children, func(s supervision.Spec) bool { return !slices.Contains(asks, s.ID) })
	system, err := supervision.New(supervision.Config{Clock: supervision.RealClock(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	if err := system.Start(root); err != nil {
		t.Fatal(err)
	}
	return system
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
