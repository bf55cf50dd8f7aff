package network

import (
	"context"
	"fmt"
	"math/rand"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/store/ledger"
	"github.com/nodeactor/nodeactor/test/isolate"
)

// crashEnv makes this test binary the process that is to be killed: "ledger:pod path:pod path...".
const crashEnv = "NODEACTOR_NETWORK_CRASH"

const crashRounds = 12

func TestMain(m *testing.M) {
	if spec := os.Getenv(crashEnv); spec != "" {
		churn(strings.Split(spec, ":"))
	}
	if code, started := isolate.Rerun(); started {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// churn sets up, attaches and detaches for ever. It runs in the namespace it was started in.
func churn(args []string) {
	l, err := ledger.Open(args[0])
	check(err)
	n, err := Open(testConfig(l))
	check(err)
	for {
		check(n.Setup(context.Background()))
		for i, path := range args[1:] {
			_, err := n.Attach(context.Background(), fmt.Sprint("pod", i), path)
			check(err)
		}
		fmt.Println("attached")
		for i := range args[1:] {
			check(n.Detach(context.Background(), fmt.Sprint("pod", i)))
		}
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

// Killed at any point, the next start finds by the ledger what was begun: what lives is completed, the rest is removed.
func TestKilledAtAnyPointNothingIsLeft(t *testing.T) {
	enterNewNode(t)
	file := filepath.Join(t.TempDir(), "ledger.db")
	pods := []string{newPod(t), newPod(t), newPod(t)}
	for round := range crashRounds {
		killChurn(t, file, pods)
		l, err := ledger.Open(file)
		must(t, err)
		n := open(t, testConfig(l))
		must(t, n.Sweep(bounded(t), func(uid string) bool { return uid == "pod0" }))
		must(t, n.Setup(bounded(t)))
		for _, name := range linkNames(t) {
			if n.owns(name) && name != linkName("natest", "pod0", 0) {
				t.Fatalf("round %d: %s is left", round, name)
			}
		}
		checkAnswers(t, attach(t, n, "pod0", pods[0]), pods[0])
		must(t, n.Teardown(bounded(t)))
		if left := linkNames(t); !slices.Equal(left, []string{"lo"}) || ownTables(t, n) != 0 {
			t.Fatalf("round %d: left are %v", round, left)
		}
		must(t, l.Close())
	}
}

func checkAnswers(t *testing.T, addr netip.Addr, pod string) {
	t.Helper()
	stop := in(t, pod, serveBriefly)
	defer stop()
	if _, err := dial(addr); err != nil {
		t.Errorf("the pod does not answer: %v", err)
	}
}

// killChurn starts churn in this thread's namespace and kills it a random moment after its first round of attaching.
func killChurn(t *testing.T, file string, pods []string) {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), crashEnv+"="+strings.Join(append([]string{file}, pods...), ":"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	runtime.LockOSThread() // the child inherits this thread's namespace
	defer runtime.UnlockOSThread()
	must(t, cmd.Start())
	buf := make([]byte, 16)
	if _, err := out.Read(buf); err != nil {
		t.Errorf("the process to kill ended by itself: %v", err)
	}
	time.Sleep(time.Duration(rand.Intn(60_000)) * time.Microsecond)
	must(t, cmd.Process.Kill())
	cmd.Wait()
}
