package runtime

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/kubelet/runtime/wire"
	"github.com/nodeactor/nodeactor/test/hostimage"
)

// A daemon under test is this test binary again, with a role in its environment; it is there to be killed.
const (
	roleSteady = "steady" // starts three containers, says so, and waits
	roleBusy   = "busy"   // makes and removes pods without end
)

// daemonMain is the main function of such a process. Its directory and cgroup come from the test.
func daemonMain(role string) int {
	dir := os.Getenv("NODEACTOR_TEST_DIR")
	helperPath = os.Getenv("NODEACTOR_HELPER")
	l, err := openLedger(dir)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	e, err := Open(Config{
		Dir: filepath.Join(dir, "run"), HelperPath: helperPath, CgroupRoot: os.Getenv("NODEACTOR_TEST_CGROUP"),
		Ledger: l, Clock: wallClock{}, Log: slog.New(slog.DiscardHandler),
	})
	if err == nil {
		_, err = e.Recover(context.Background())
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	go func() { _ = e.Poll(context.Background(), nil) }()
	if role == roleSteady {
		err = runSteady(e, dir)
	} else {
		fmt.Println("ready")
		err = runBusy(e, dir)
	}
	fmt.Println(err)
	return 1
}

func daemonSpec(dir, pod, name, script string) ContainerSpec {
	return ContainerSpec{
		ID: pod + "-" + name, PodUID: pod, Name: name, Rootfs: RootfsSpec{Layers: []string{filepath.Join(dir, "layer")}},
		Args: []string{"/bin/sh", "-c", script}, LogPath: filepath.Join(dir, "logs", pod+"-"+name+".log"), Labels: map[string]string{"k": "v"},
	}
}

func runSteady(e *Engine, dir string) error {
	ctx := context.Background()
	if _, err := e.CreateSandbox(ctx, SandboxSpec{PodUID: "pod1", Hostname: "pod1", ShareProcessNamespace: true}); err != nil {
		return err
	}
	for name, script := range map[string]string{
		"stays": "while ! test -e /stop; do echo tick; sleep 0.02; done; exit 12",
		"ends":  "while ! test -e /stop; do sleep 0.02; done; exit 11",
		"shim":  "sleep 1000",
	} {
		if _, err := e.StartContainer(ctx, daemonSpec(dir, "pod1", name, script)); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	select {}
}

func runBusy(e *Engine, dir string) error {
	ctx := context.Background()
	done := make(chan error)
	for worker := range 3 {
		go func() {
			for n := 0; ; n++ {
				pod := fmt.Sprintf("pod%d-%d", worker, n)
				if _, err := e.CreateSandbox(ctx, SandboxSpec{PodUID: pod, Hostname: pod, QOS: Burstable, ShareProcessNamespace: n%3 == 0}); err != nil {
					done <- err
				}
				if _, err := e.StartContainer(ctx, daemonSpec(dir, pod, "a", "sleep 1000")); err != nil {
					done <- err
				}
				if n%2 == 0 {
					if err := e.RemoveContainer(ctx, pod+"-a"); err != nil {
						done <- err
					}
				}
				if err := e.RemoveSandbox(ctx, pod); err != nil {
					done <- err
				}
			}
		}()
	}
	return <-done
}

// startDaemon returns when the daemon is ready.
func startDaemon(t *testing.T, dir, cgroup, role string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "NODEACTOR_TEST_DAEMON="+role, "NODEACTOR_TEST_DIR="+dir, "NODEACTOR_TEST_CGROUP="+cgroup, "NODEACTOR_HELPER="+helperPath)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, _ := bufio.NewReader(out).ReadString('\n')
	if strings.TrimSpace(line) != "ready" {
		t.Fatalf("daemon says %q", line)
	}
	return cmd
}

// kill is kill -9, and waits for the end.
func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

func crashDir(t *testing.T) (dir, cgroup string) {
	t.Helper()
	needsRoot(t)
	dir = testDir(t)
	busyboxLayer(t, filepath.Join(dir, "layer"))
	return dir, cgroupOf(dir)
}

func TestRecoverAdopts(t *testing.T) {
	dir, cgroup := crashDir(t)
	before, err := hostimage.Take()
	if err != nil {
		t.Fatal(err)
	}
	kill(startDaemon(t, dir, cgroup, roleSteady))
	layout := filepath.Join(dir, "run/containers")
	stop := func(name string) {
		if err := os.WriteFile(filepath.Join(layout, "pod1-"+name, "rootfs/stop"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stop("ends")
	eventually(t, "exit file", func() bool { _, err := os.Stat(filepath.Join(layout, "pod1-ends/exit.json")); return err == nil })
	killShim(t, filepath.Join(layout, "pod1-shim/lock"))

	cfg := testConfig(t, dir)
	cfg.CgroupRoot = cgroup
	h := &host{Engine: openEngine(t, cfg), t: t, dir: dir}
	pods, err := h.List(h.ctx())
	if err != nil || len(pods) != 1 || len(pods[0].Containers) != 3 || !pods[0].Ready {
		t.Fatalf("list is %+v, %v", pods, err)
	}
	for _, c := range pods[0].Containers {
		if c.Labels["k"] != "v" || c.StartedAt.IsZero() {
			t.Errorf("container is %+v", c)
		}
		switch {
		case c.Name == "ends" && (c.State != Exited || c.ExitCode != 11):
			t.Errorf("what ended meanwhile is %+v", c)
		case c.Name != "ends" && c.State != Running:
			t.Errorf("what ran on is %+v", c)
		}
	}
	n := len(logLines(t, filepath.Join(dir, "logs/pod1-stays.log")))
	eventually(t, "more log", func() bool { return len(logLines(t, filepath.Join(dir, "logs/pod1-stays.log"))) > n })
	if code, err := h.Exec(h.ctx(), "pod1-stays", ExecSpec{Args: []string{"true"}}); err != nil || code != 0 {
		t.Errorf("exec in an adopted container: %d, %v", code, err)
	}
	stop("stays")
	if c := h.wait("pod1-stays"); c.ExitCode != 12 {
		t.Errorf("exit after adoption is %+v", c)
	}
	if err := h.Signal(h.ctx(), "pod1-shim", syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if c := h.wait("pod1-shim"); c.ExitCode != 137 {
		t.Errorf("exit without a shim is %+v", c)
	}
	if err := h.RemoveAll(h.ctx()); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, before, dir, cgroup)
}

// TestAfterARestartOfTheHost does what a restart does: processes and mounts are gone, files are there, the boot is another.
func TestAfterARestartOfTheHost(t *testing.T) {
	dir, cgroup := crashDir(t)
	kill(startDaemon(t, dir, cgroup, roleSteady))
	l := wire.Layout{Run: filepath.Join(dir, "run")}
	e := &Engine{cfg: Config{HelperPath: helperPath, Log: slog.New(slog.DiscardHandler)}}
	if _, err := e.call(context.Background(), testDeadline, wire.OpKill, wire.KillRequest{Cgroup: cgroup, WaitMS: 10000}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"stays", "ends", "shim"} {
		id := "pod1-" + name
		eventually(t, "end of shim", func() bool { return wire.LockHolder(l.Lock(id)) == 0 })
		if err := os.Remove(l.Exit(id)); err != nil && name != "ends" {
			t.Fatal(err)
		}
		rewrite(t, l.Started(id), wire.BootID(), "another-boot")
	}
	rewrite(t, l.Ready("pod1"), wire.BootID(), "another-boot")

	cfg := testConfig(t, dir)
	h := &host{Engine: openEngine(t, cfg), t: t, dir: dir}
	pods, err := h.List(h.ctx())
	if err != nil || len(pods) != 1 || pods[0].Ready || len(pods[0].Containers) != 3 {
		t.Fatalf("list is %+v, %v", pods, err)
	}
	for _, c := range pods[0].Containers {
		if c.State != Exited || c.ExitCode != 137 || c.Reason != ReasonUnknown {
			t.Errorf("container is %+v", c)
		}
	}
	if err := h.RemoveSandbox(h.ctx(), "pod1"); err != nil {
		t.Fatal(err)
	}
}

func rewrite(t *testing.T, path, old, with string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(raw), old, with)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func killShim(t *testing.T, lock string) {
	t.Helper()
	fd := openHolder(lock)
	if fd < 0 {
		t.Fatal("no shim")
	}
	defer syscall.Close(fd)
	(&helperProcess{pidfd: fd}).kill()
	awaitReadable(fd, testDeadline)
}

func nothingLeft(t *testing.T, before hostimage.Image, parts ...string) {
	t.Helper()
	var left []string
	for range 500 { // orphans of a killed daemon are reaped by somebody else, and not at once
		after, err := hostimage.Take()
		if err != nil {
			t.Fatal(err)
		}
		if left = after.Since(before, parts...); len(left) == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("left behind:\n%s", strings.Join(left, "\n"))
}

// TestKilledAtAnyInstruction kills a busy daemon at random moments; what its records say and what is there must agree
// after the next start, and nothing may be left in the end.
func TestKilledAtAnyInstruction(t *testing.T) {
	dir, cgroup := crashDir(t)
	before, err := hostimage.Take()
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	for round := range rounds {
		daemon := startDaemon(t, dir, cgroup, roleBusy)
		time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
		kill(daemon)
		if round%3 == 2 { // otherwise the next daemon recovers
			recoverOnce(t, dir, cgroup)
			nothingLeft(t, before, dir, cgroup)
		}
	}
}

func recoverOnce(t *testing.T, dir, cgroup string) {
	t.Helper()
	l, err := openLedger(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cfg := Config{
		Dir: filepath.Join(dir, "run"), HelperPath: helperPath, CgroupRoot: cgroup, Ledger: l, Clock: wallClock{},
		Log: slog.New(slog.NewTextHandler(testLog{t}, nil)),
	}
	e, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ctx, cancel := context.WithTimeout(context.Background(), testDeadline)
	defer cancel()
	report, err := e.Recover(ctx)
	if err != nil {
		t.Fatal(err)
	}
	pods, err := e.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods {
		for _, c := range p.Containers {
			// Killed is one whose removal was interrupted; unknown would be one that got lost.
			if c.State != Running && (c.ExitCode != 137 || c.Reason != ReasonError) {
				t.Errorf("container is %+v", c)
			}
		}
	}
	t.Logf("recovered %+v", report)
	if err := e.RemoveAll(ctx); err != nil {
		t.Fatal(err)
	}
	for _, bucket := range []string{bucketSandboxes, bucketContainers} {
		if err := l.Each(bucket, func(key string, _ []byte) error { return errors.New(key) }); err != nil {
			t.Errorf("%s still has %v", bucket, err)
		}
	}
}
