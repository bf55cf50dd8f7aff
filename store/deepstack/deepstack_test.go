package deepstack

import (
	"runtime"
	"sync"
	"testing"
)

// calls goes deep with frames of some size, as the handlers of a request do.
//
//go:noinline
func calls(n int) (sum byte) {
	var frame [256]byte
	frame[n] = byte(n)
	if n > 0 {
		sum = calls(n - 1)
	}
	return sum + frame[n]
}

func run(f func()) {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	<-done
}

// TestReserveMakesRoom: what is called after Reserve finds its stack large enough already.
func TestReserveMakesRoom(t *testing.T) {
	t.Run("for a request", func(t *testing.T) { makesRoom(t, Reserve, room) })
	t.Run("for the way into one", func(t *testing.T) { makesRoom(t, ReserveEntry, entry) })
}

func makesRoom(t *testing.T, reserve func(), want int) {
	t.Helper()
	// Stack memory is taken from the system in spans; many goroutines at once make the difference visible.
	const goroutines = 64
	runtime.GC() // what earlier goroutines had is no longer in use
	before := stackInUse()
	hold, ready := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			reserve()
			ready <- struct{}{}
			<-hold
		})
	}
	for range goroutines {
		<-ready
	}
	held := stackInUse() - before
	close(hold)
	all.Wait()
	if held < goroutines*want {
		t.Fatalf("%d goroutines have %d bytes of stack, want at least %d each", goroutines, held, want)
	}
}

func stackInUse() int {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.StackInuse)
}

func BenchmarkDeepCalls(b *testing.B) {
	for name, prepare := range map[string]func(){"grown": func() {}, "reserved": Reserve} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				run(func() { prepare(); calls(60) })
			}
		})
	}
}
