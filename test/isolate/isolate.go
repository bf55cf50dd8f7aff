// Package isolate runs a test binary again in a mount namespace of its own.
package isolate

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// isolatedEnv marks the process that runs the tests inside a mount namespace of its own.
const isolatedEnv = "NODEACTOR_TEST_ISOLATED"

// Rerun runs this test binary again in a mount namespace of its own: whatever the tests mount goes with the process,
// however it ends. It returns the exit code, or false when this already is that process.
func Rerun() (code int, started bool) {
	if os.Getenv(isolatedEnv) != "" || os.Getuid() != 0 {
		return 0, false
	}
	runtime.LockOSThread() // the signal below comes when the starting thread ends
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), isolatedEnv+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		os.Stderr.WriteString("cannot isolate the tests: " + err.Error() + "\n")
		return 1, true
	}
	return cmd.ProcessState.ExitCode(), true
}
