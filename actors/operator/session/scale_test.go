package session_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/actors/operator/session"
	"github.com/nodeactor/nodeactor/actors/operator/storage"
	"github.com/nodeactor/nodeactor/cluster/lease"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/test/harness"
)

// Bounds of what many manifests may cost.
const (
	// bytesMost is for what store and session keep of a manifest, beyond its key and value.
	bytesMost = 1228
	valueSize = 500
	// takeWithin is for the leases of all of them; the usual time is a fraction.
	takeWithin = time.Minute
)

// manyManifests is how many there are, unless SESSION_MANIFESTS says otherwise.
func manyManifests() int {
	if n, err := strconv.Atoi(os.Getenv("SESSION_MANIFESTS")); err == nil && n > 0 {
		return n
	}
	if raceDetector {
		return 4000
	}
	return 20_000
}

// TestManyManifests takes all leases of many manifests at once, and measures how long that takes and what is kept in memory.
func TestManyManifests(t *testing.T) {
	for _, c := range []struct {
		name string
		open func() (storage.Store, error)
	}{
		{"shared", func() (storage.Store, error) { return storage.OpenShared(t.TempDir()) }},
		{"memory", func() (storage.Store, error) { return storage.Memory(), nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			many := manyManifests()
			before := heap()
			store, err := c.open()
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			keys := fill(t, store, many)
			filled := time.Since(began)
			s := session.New(store, lease.SessionID{Node: "node", Boot: "1"})
			s.Listen(kind, session.Listener{})
			system := runReal(t, s)
			began = time.Now()
			for s.Stats().Held < many {
				if time.Since(began) > takeWithin {
					t.Fatalf("%+v after %s", s.Stats(), takeWithin)
				}
				time.Sleep(10 * time.Millisecond)
			}
			took := time.Since(began)
			time.Sleep(lease.TickEvery) // for what it still hears of its own writes
			kept := int64(heap()-before) - int64(keys)
			if c.name == "memory" {
				kept -= int64(many * valueSize)
			}
			t.Logf("%d manifests: stored in %s, all leases held after %s, %d bytes of each are kept", many, filled.Round(time.Millisecond), took.Round(time.Millisecond), kept/int64(many))
			if kept > int64(many*bytesMost) && !raceDetector { // which makes them larger
				t.Errorf("%d bytes are kept of each manifest, the most is %d", kept/int64(many), bytesMost)
			}
			leaveAll(t, s, system, store)
		})
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// fill stores manifests by many writers; it returns how many bytes their keys have.
func fill(t *testing.T, store storage.Store, many int) (keys int) {
	const writers = 200
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := w; i < many; i += writers {
				id := storage.ID{Kind: kind, Namespace: "default", Name: fmt.Sprintf("manifest-%06d", i)}
				if _, err := store.Write(t.Context(), storage.Write{ID: id, Value: make([]byte, valueSize)}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return many * len(storage.ID{Kind: kind, Namespace: "default", Name: "manifest-000000"}.Key())
}

func runReal(t *testing.T, s *session.Session) *supervision.System {
	t.Helper()
	system, err := supervision.New(supervision.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := system.Start(harness.Group("root", harness.OneForOne, s.Spec())); err != nil {
		t.Fatal(err)
	}
	return system
}

// leaveAll gives all leases back, and measures that.
func leaveAll(t *testing.T, s *session.Session, system *supervision.System, store storage.Store) {
	t.Helper()
	began := time.Now()
	s.Leave()
	select {
	case <-s.Left():
	case <-time.After(takeWithin):
		t.Fatal("it does not leave")
	}
	t.Logf("all given back after %s", time.Since(began).Round(time.Millisecond))
	system.Stop(t.Context())
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}
