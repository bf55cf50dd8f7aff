package harness

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// leakPatience is how long goroutines may take to end after a test.
const leakPatience = 2 * time.Second

// goroutines are those of before a test.
type goroutines struct {
	before int
	skip   bool
}

func countGoroutines(o options) goroutines { return goroutines{runtime.NumGoroutine(), o.parallel} }

// check fails the test when there are more than before.
func (g goroutines) check(t testing.TB) {
	t.Helper()
	if g.skip {
		return
	}
	for end := time.Now().Add(leakPatience); runtime.NumGoroutine() > g.before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			buf := make([]byte, 1<<20)
			all := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
			t.Errorf("%d goroutines are left, %d were there before:\n%s", len(all), g.before, strings.Join(all[1:], "\n\n"))
			return
		}
	}
}
