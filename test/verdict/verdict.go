// Package verdict lets a test see how a test fails.
package verdict

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// Recorder is a test that notes how it fails instead of failing.
type Recorder struct {
	testing.TB
	failed bool
	said   strings.Builder
}

// Of runs something where it may fail.
func Of(t testing.TB, run func(t testing.TB)) *Recorder {
	r, done := &Recorder{TB: t}, make(chan struct{})
	go func() {
		defer close(done)
		run(r)
	}()
	<-done
	return r
}

// Said is all that it was told.
func (r *Recorder) Said() string { return r.said.String() }

// Helper implements testing.TB.
func (r *Recorder) Helper() {}

// Failed implements testing.TB.
func (r *Recorder) Failed() bool { return r.failed }

// Logf implements testing.TB.
func (r *Recorder) Logf(format string, args ...any) { fmt.Fprintf(&r.said, format+"\n", args...) }

// Errorf implements testing.TB.
func (r *Recorder) Errorf(format string, args ...any) {
	r.Logf(format, args...)
	r.failed = true
}

// Fatalf implements testing.TB.
func (r *Recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}
