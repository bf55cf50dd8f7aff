// Package daemon is what tests that run the real program share: where it is, whose a data directory is, and the removal of
// what a run that was killed has left behind.
package daemon

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const (
	// ownerSuffix behind the name of a data directory is a note of the process of the tests that use it.
	ownerSuffix = ".owner"
	// LogSuffix behind the name of a data directory is its daemon's log.
	LogSuffix = ".log"
	// CopySuffix behind the name of a data directory is a copy of it.
	CopySuffix = ".pristine"
)

// Bin is the folder with the programs: $NODEACTOR_BIN, or bin/ of the tree for a package two folders down. Without root the
// test is skipped.
func Bin(t testing.TB) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("skipped: starting containers needs root")
	}
	dir := os.Getenv("NODEACTOR_BIN")
	if dir == "" {
		dir = "../../bin"
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(abs, "nodeactor")); err != nil {
		t.Fatalf("build first with `make binaries`: %v", err)
	}
	return abs
}

// Own notes that this process uses dir, so that nobody sweeps it meanwhile.
func Own(dir string) error {
	return os.WriteFile(dir+ownerSuffix, fmt.Appendf(nil, "%d", os.Getpid()), 0o600)
}

// Start runs the daemon in dir, which becomes this process's own, with its log beside it; how is O_APPEND or O_TRUNC. The daemon dies with
// this process. What it ends with comes over the channel.
func Start(t testing.TB, bin, dir string, how int, args ...string) (*exec.Cmd, chan error) {
	t.Helper()
	if err := Own(dir); err != nil {
		t.Fatal(err)
	}
	log, err := os.OpenFile(dir+LogSuffix, os.O_CREATE|how|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(bin, "nodeactor"), args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	return cmd, exited
}

// Remove removes dir and what lies beside it of the run.
func Remove(dir string) {
	os.RemoveAll(dir)
	os.Remove(dir + LogSuffix)
	os.Remove(dir + ownerSuffix)
}

// owned tells whether a live process of these tests uses dir.
func owned(dir string) bool {
	b, err := os.ReadFile(dir + ownerSuffix)
	if err != nil {
		return false
	}
	var pid int
	fmt.Sscan(string(b), &pid)
	return pid > 0 && syscall.Kill(pid, 0) == nil
}

// Sweep resets the nodes whose directories in the folder for temporary files begin with prefix and belong to no live
// process, and removes what is left of them.
func Sweep(t testing.TB, bin, prefix string) {
	t.Helper()
	old, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"-*"))
	for _, path := range old {
		dir := path
		for _, suffix := range []string{LogSuffix, CopySuffix, ownerSuffix} {
			dir = strings.TrimSuffix(dir, suffix)
		}
		if owned(dir) {
			continue
		}
		t.Logf("removing %s, left by an earlier run", path)
		if path == dir {
			_ = exec.Command(filepath.Join(bin, "nodeactor"), "reset", "--yes", "--data-dir", dir, "--cgroup-root", "/"+filepath.Base(dir)).Run()
		}
		os.RemoveAll(path)
	}
}

// Tail is the end of what a daemon wrote to its log.
func Tail(path string, lines int) string {
	b, _ := os.ReadFile(path)
	all := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
