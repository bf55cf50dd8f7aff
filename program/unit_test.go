package program

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestUnitOfAProcess holds that only a unit's main process counts, which systemd tells its pid.
func TestUnitOfAProcess(t *testing.T) {
	if unit, ok := unitOf(os.Getpid()); ok {
		t.Errorf("this test is the main process of %s", unit)
	}
	if _, ok := unitOf(0); ok {
		t.Error("no process has a unit")
	}
	c := exec.Command("sh", "-c", "SYSTEMD_EXEC_PID=$$ exec sleep 60")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if unit, ok := unitOf(c.Process.Pid); ok {
			if !strings.HasSuffix(unit, ".service") {
				t.Errorf("the unit is called %q", unit)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("a unit's main process is not recognised")
		}
	}
}
