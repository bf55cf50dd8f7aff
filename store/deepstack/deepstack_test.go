package deepstack

import (
	"runtime"
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
	// Stack memory is taken from the system in spans; many goroutines at once make the difference visible.
	const goroutines = 64
	before := stackInUse()
	hold, ready := make(chan struct{}), make(chan struct{})
	for range goroutines {
		go func() {
			Reserve()
			ready <- struct{}{}
			<-hold
		}()
	}
	for range goroutines {
		<-ready
	}
	held := stackInUse() - before
	close(hold)
	if held < goroutines*room {
		t.Fatalf("%d goroutines have %d bytes of stack, want at least %d each", goroutines, held, room)
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
