package apiserver

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func TestSecondBootstrapWritesNothing(t *testing.T) {
	dir := t.TempDir()
	t.Run("first", func(t *testing.T) {
		f := newFixtureIn(t, dir, Config{})
		settle(t, f)
	})
	t.Run("second", func(t *testing.T) {
		f := newFixtureIn(t, dir, Config{}) // bootstraps
		before := f.store.Revision()
		if err := f.Bootstrap(f.ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond)
		if after := f.store.Revision(); after != before {
			t.Errorf("the revision moved from %d to %d", before, after)
		}
	})
}

// settle waits until the revision stands still.
func settle(t *testing.T, f *fixture) {
	t.Helper()
	for last := int64(-1); last != f.store.Revision(); {
		last = f.store.Revision()
		select {
		case <-f.ctx.Done():
			t.Fatal("the store never comes to rest")
		case <-time.After(300 * time.Millisecond):
		}
	}
}

func TestRestartWritesNothing(t *testing.T) {
	dir := t.TempDir()
	var before int64
	t.Run("first", func(t *testing.T) {
		f := newFixtureIn(t, dir, Config{})
		settle(t, f)
		before = f.store.Revision()
	})
	t.Run("second", func(t *testing.T) {
		f := newFixtureIn(t, dir, Config{})
		settle(t, f)
		if after := f.store.Revision(); after != before {
			t.Errorf("the revision moved from %d to %d", before, after)
		}
	})
}

func TestCloseLeavesNoGoroutine(t *testing.T) {
	newRun := func() {
		t.Run("run", func(t *testing.T) {
			var w watch.Interface
			t.Cleanup(func() { w.Stop() }) // after Close: the watch is open when the server closes
			f := newFixture(t)
			var err error
			if w, err = f.admin.CoreV1().Pods("").Watch(context.Background(), metav1.ListOptions{}); err != nil {
				t.Fatal(err)
			}
		})
	}
	newRun() // what libraries start once stays
	time.Sleep(time.Second)
	before := stacks()
	for range 3 {
		newRun()
	}
	for deadline := time.Now().Add(15 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		extra := len(stacks()) - len(before)
		if extra <= 0 {
			return
		}
		if time.Now().After(deadline) {
			var b strings.Builder
			_ = pprof.Lookup("goroutine").WriteTo(&b, 1)
			t.Fatalf("%d goroutines are left:\n%s", extra, b.String())
		}
	}
}

func stacks() []runtime.StackRecord {
	records := make([]runtime.StackRecord, runtime.NumGoroutine()+100)
	n, _ := runtime.GoroutineProfile(records)
	return records[:n]
}

func TestClosedServerRefuses(t *testing.T) {
	f := newFixture(t)
	f.Close()
	if _, err := f.admin.CoreV1().Pods("default").List(f.ctx, metav1.ListOptions{}); !errors.Is(err, errClosed) {
		t.Errorf("got %v", err)
	}
	if _, err := f.admin.CoreV1().Pods("default").Watch(f.ctx, metav1.ListOptions{}); !errors.Is(err, errClosed) {
		t.Errorf("got %v", err)
	}
}

func TestCloseRightAfterNew(t *testing.T) {
	f := newFixture(t)
	s, err := New(f.ctx, f.Server.config)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

func TestPanicInAHandlerIsAnAnswer(t *testing.T) {
	bad := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("boom") })
	f := newFixtureIn(t, t.TempDir(), Config{ExtraHandlers: map[string]http.Handler{"/bad": bad}})
	for _, client := range []func() error{
		func() error {
			return f.admin.Discovery().RESTClient().Get().AbsPath("/bad").MaxRetries(0).Do(f.ctx).Error()
		},
	} {
		if err := client(); err == nil || !strings.Contains(err.Error(), "panic") {
			t.Errorf("got %v", err)
		}
	}
	if _, err := f.admin.CoreV1().Pods("default").List(f.ctx, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}
