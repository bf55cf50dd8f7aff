package harness

import (
	"fmt"
	"os"
	"runtime"
	"testing"
)

// printer is a testing.TB outside of tests.
type printer struct {
	testing.TB
	name   string
	failed bool
}

// Printer is a testing.TB for examples and programs: what it has to say goes to standard
// output. Its FailNow ends the goroutine, as that of a test does.
func Printer(name string) testing.TB { return &printer{name: name} }

// Name implements testing.TB.
func (p *printer) Name() string { return p.name }

// Helper implements testing.TB.
func (p *printer) Helper() {}

// Failed implements testing.TB.
func (p *printer) Failed() bool { return p.failed }

// Fail implements testing.TB.
func (p *printer) Fail() { p.failed = true }

// FailNow implements testing.TB.
func (p *printer) FailNow() {
	p.failed = true
	runtime.Goexit()
}

// Log implements testing.TB.
func (p *printer) Log(args ...any) { fmt.Println(args...) }

// Logf implements testing.TB.
func (p *printer) Logf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// Error implements testing.TB.
func (p *printer) Error(args ...any) {
	p.Log(args...)
	p.Fail()
}

// Errorf implements testing.TB.
func (p *printer) Errorf(format string, args ...any) {
	p.Logf(format, args...)
	p.Fail()
}

// Fatal implements testing.TB.
func (p *printer) Fatal(args ...any) {
	p.Log(args...)
	p.FailNow()
}

// Fatalf implements testing.TB.
func (p *printer) Fatalf(format string, args ...any) {
	p.Logf(format, args...)
	p.FailNow()
}

// TempDir implements testing.TB; it is the caller's to remove.
func (p *printer) TempDir() string {
	dir, err := os.MkdirTemp("", "harness")
	if err != nil {
		p.Fatal(err)
	}
	return dir
}
