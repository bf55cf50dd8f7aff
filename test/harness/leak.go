package harness

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// Limits of the look for goroutines that stay.
const (
	// leakPatience is how long goroutines may take to end after a test.
	leakPatience = 2 * time.Second
	// stackRoom bounds the dump of all goroutines.
	stackRoom = 4 << 20
)

// goroutines are those of before a test, by their numbers, which are never used twice.
type goroutines struct {
	before map[string]bool
	skip   bool
}

func countGoroutines(o options) goroutines {
	g := goroutines{map[string]bool{}, o.parallel}
	if !g.skip {
		for _, stack := range allGoroutines() {
			g.before[number(stack)] = true
		}
	}
	return g
}

// allGoroutines is the stack of each.
func allGoroutines() []string {
	for room := stackRoom / 64; ; room *= 4 {
		buf := make([]byte, room)
		if n := runtime.Stack(buf, true); n < room || room >= stackRoom {
			return strings.Split(string(buf[:n]), "\n\n")
		}
	}
}

// number is the first line of a stack without what the goroutine does.
func number(stack string) string {
	before, _, _ := strings.Cut(stack, "[")
	return before
}

// check fails the test when there are others than before.
func (g goroutines) check(t testing.TB) {
	t.Helper()
	if g.skip {
		return
	}
	for end := time.Now().Add(leakPatience); ; time.Sleep(time.Millisecond) {
		left := g.others()
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Errorf("%d goroutines are left:\n%s", len(left), strings.Join(left, "\n\n"))
			return
		}
	}
}

func (g goroutines) others() (left []string) {
	for _, stack := range allGoroutines() {
		if !g.before[number(stack)] {
			left = append(left, stack)
		}
	}
	return left
}
