package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/store/ledger"
)

// testDeadline bounds everything a test waits for; the machine may be slow and emulated.
const testDeadline = 60 * time.Second

// What these tests make on a host carries their name and process, so that the next run can remove what a killed one left.
const (
	testPrefix = "nodeactor-rt-test"
	cgroupHome = "/" + testPrefix
)

var (
	helperPath string
	runName    = fmt.Sprintf("%s-%d", testPrefix, os.Getpid())
	baseDir    = filepath.Join(os.TempDir(), runName)
	baseCgroup = filepath.Join(cgroupHome, runName)
)

func TestMain(m *testing.M) {
	if role := os.Getenv("NODEACTOR_TEST_DAEMON"); role != "" {
		os.Exit(daemonMain(role))
	}
	err := os.MkdirAll(filepath.Join(baseDir, "bin"), 0o755)
	if err == nil {
		err = buildHelper(filepath.Join(baseDir, "bin"))
	}
	if err == nil {
		err = sweepDead()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot prepare:", err)
		os.Exit(1)
	}
	code := m.Run()
	if err := sweepRun(runName); err != nil {
		fmt.Fprintln(os.Stderr, "cannot clean up:", err)
		code = 1
	}
	os.RemoveAll(baseDir)
	os.Exit(code)
}

// sweepDead removes what runs left that were killed.
func sweepDead() error {
	if os.Getuid() != 0 {
		return nil
	}
	found, err := filepath.Glob(filepath.Join(os.TempDir(), testPrefix+"-*"))
	if err != nil {
		return err
	}
	for _, dir := range found {
		if _, err := os.Stat("/proc/" + strings.TrimPrefix(filepath.Base(dir), testPrefix+"-")); err == nil {
			continue
		}
		if err := sweepRun(filepath.Base(dir)); err != nil {
			return err
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}

// sweepRun opens each run directory of one test process without any record: everything in it is unknown then.
func sweepRun(name string) error {
	runs, err := filepath.Glob(filepath.Join(os.TempDir(), name, "*", "run"))
	if err != nil {
		return err
	}
	for _, run := range runs {
		e, err := Open(Config{
			Dir: run, HelperPath: helperPath, CgroupRoot: filepath.Join(cgroupHome, name, filepath.Base(filepath.Dir(run))),
			Ledger: noLedger{}, Clock: wallClock{}, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			return err
		}
		_, err = e.Recover(context.Background())
		if err := errors.Join(err, e.Close()); err != nil {
			return err
		}
	}
	for _, parent := range []string{filepath.Join(cgroupHome, name), cgroupHome} {
		dirs, _ := filepath.Glob("/sys/fs/cgroup/*" + parent)
		for _, dir := range append(dirs, "/sys/fs/cgroup"+parent) {
			_ = syscall.Rmdir(dir)
		}
	}
	return nil
}

type noLedger struct{}

func (noLedger) Put(string, string, any) error                 { return nil }
func (noLedger) Get(string, string, any) (bool, error)         { return false, nil }
func (noLedger) Delete(string, string) error                   { return nil }
func (noLedger) Each(string, func(string, []byte) error) error { return nil }

// buildHelper builds the helper, unless NODEACTOR_HELPER names one: where the tests run there may be no compiler.
func buildHelper(dir string) error {
	if helperPath = os.Getenv("NODEACTOR_HELPER"); helperPath != "" {
		return nil
	}
	helperPath = filepath.Join(dir, "nodeactor-runtime")
	out, err := exec.Command("go", "build", "-p", "2", "-o", helperPath, "../../cmd/nodeactor-runtime").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// needsRoot skips with the reason where no container can run.
func needsRoot(t testing.TB) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("starting containers needs root")
	}
	if _, err := exec.LookPath("busybox"); err != nil {
		t.Skip("the test containers need a static busybox: apt-get install busybox-static")
	}
}

// host is an Engine under test with a directory and cgroup of its own.
type host struct {
	*Engine
	t     testing.TB
	dir   string
	layer string
	n     atomic.Int64
}

// testDir is the test's own directory; its name is also that of its cgroup.
func testDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(baseDir, "t")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func cgroupOf(dir string) string { return filepath.Join(baseCgroup, filepath.Base(dir)) }

func newHost(t testing.TB, change ...func(*Config)) *host {
	t.Helper()
	needsRoot(t)
	dir := testDir(t)
	h := &host{t: t, dir: dir, layer: busyboxLayer(t, filepath.Join(dir, "layer"))}
	cfg := testConfig(t, dir)
	for _, f := range change {
		f(&cfg)
	}
	h.Engine = openEngine(t, cfg)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testDeadline)
		defer cancel()
		if err := h.RemoveAll(ctx); err != nil {
			t.Errorf("cannot clean up: %v", err)
		}
	})
	return h
}

func testConfig(t testing.TB, dir string) Config {
	t.Helper()
	l, err := openLedger(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return Config{
		Dir: filepath.Join(dir, "run"), HelperPath: helperPath, CgroupRoot: cgroupOf(dir),
		Ledger: l, Clock: wallClock{}, Log: slog.New(slog.NewTextHandler(testLog{t}, nil)),
	}
}

// openLedger gives a killed daemon's last child a moment to let go of the file.
func openLedger(dir string) (l *ledger.Ledger, err error) {
	for range 50 {
		if l, err = ledger.Open(filepath.Join(dir, "ledger.db")); err == nil {
			return l, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil, err
}

type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }

type testLog struct{ t testing.TB }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Logf("%s", bytes.TrimSpace(p))
	return len(p), nil
}

func openEngine(t testing.TB, cfg Config) *Engine {
	t.Helper()
	e, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Recover(context.Background()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = e.Poll(ctx, nil) }()
	t.Cleanup(func() {
		cancel()
		<-done
		e.Close()
	})
	return e
}

// busyboxLayer is an image layer with a shell and the usual programs.
func busyboxLayer(t testing.TB, dir string) string {
	t.Helper()
	path, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"bin", "etc", "proc", "sys", "dev", "home"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o1777); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bin/busybox"), raw, 0o755); err != nil {
		t.Fatal(err)
	}
	names, err := exec.Command(path, "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(names)) {
		_ = os.Symlink("busybox", filepath.Join(dir, "bin", name))
	}
	if err := os.WriteFile(filepath.Join(dir, "etc/passwd"), []byte("root:x:0:0::/:/bin/sh\nuser:x:1000:1000::/home:/bin/sh\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// sandbox makes one; its uid is name.
func (h *host) sandbox(name string, change ...func(*SandboxSpec)) Sandbox {
	h.t.Helper()
	spec := SandboxSpec{PodUID: name, Namespace: "default", Name: name, Hostname: name}
	for _, f := range change {
		f(&spec)
	}
	s, err := h.CreateSandbox(h.ctx(), spec)
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

func (h *host) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testDeadline)
	h.t.Cleanup(cancel)
	return ctx
}

// spec is a container that runs a shell script.
func (h *host) spec(pod, script string, change ...func(*ContainerSpec)) ContainerSpec {
	id := fmt.Sprintf("%s-c%d", pod, h.n.Add(1))
	spec := ContainerSpec{
		ID: id, PodUID: pod, Name: "main", Rootfs: RootfsSpec{Layers: []string{h.layer}}, Args: []string{"/bin/sh", "-c", script},
		LogPath: filepath.Join(h.dir, "logs", id+".log"),
	}
	for _, f := range change {
		f(&spec)
	}
	return spec
}

func (h *host) start(pod, script string, change ...func(*ContainerSpec)) Container {
	h.t.Helper()
	c, err := h.StartContainer(h.ctx(), h.spec(pod, script, change...))
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

// wait returns the container once it has exited.
func (h *host) wait(id string) Container {
	h.t.Helper()
	var c Container
	eventually(h.t, "exit of "+id, func() bool {
		var err error
		if c, err = h.Container(h.ctx(), id); err != nil {
			h.t.Fatal(err)
		}
		return c.State == Exited
	})
	return c
}

// output runs a script to its end and returns what it printed, without the log format.
func (h *host) output(pod, script string, change ...func(*ContainerSpec)) (string, Container) {
	h.t.Helper()
	c := h.wait(h.start(pod, script, change...).ID)
	var text []string
	for _, line := range logLines(h.t, c.LogPath) {
		text = append(text, line.text)
	}
	return strings.Join(text, "\n"), c
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(testDeadline); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %s within %v", what, testDeadline)
		}
	}
}

type logLine struct {
	at           time.Time
	stream, mark string
	text         string
}

func logLines(t testing.TB, path string) []logLine {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []logLine
	for _, line := range strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n") {
		if line == "" {
			continue
		}
		f := strings.SplitN(line, " ", 4)
		if len(f) != 4 {
			t.Fatalf("log line %q is not of the CRI format", line)
		}
		at, err := time.Parse(time.RFC3339Nano, f[0])
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, logLine{at, f[1], f[2], f[3]})
	}
	return out
}

func mustBe(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error is %v, want %v", err, want)
	}
}
