package runtime

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestGatesSerialiseByKeyAndGiveUpWithTheContext(t *testing.T) {
	var g gates
	leave, err := g.enter(context.Background(), "a")
	if err != nil {
		t.Fatal(err)
	}
	other, err := g.enter(context.Background(), "b")
	if err != nil {
		t.Fatal(err)
	}
	other()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = g.enter(ctx, "a")
	mustBe(t, err, context.Canceled)
	leave()
	leave, err = g.enter(context.Background(), "a")
	if err != nil {
		t.Fatal(err)
	}
	leave()
	if len(g.open) != 0 {
		t.Errorf("%d gates are kept", len(g.open))
	}
}

func TestExitOfWaitStatus(t *testing.T) {
	for _, c := range []struct {
		status, code, signal int
		oom                  int64
		reason               string
	}{
		{0, 0, 0, 0, ReasonCompleted},
		{0, 0, 0, 3, ReasonCompleted}, // a child was killed, the container coped
		{3 << 8, 3, 0, 0, ReasonError},
		{1 << 8, 1, 0, 1, ReasonOOMKilled},
		{int(unix.SIGKILL), 137, 9, 0, ReasonError},
		{int(unix.SIGKILL), 137, 9, 1, ReasonOOMKilled},
		{int(unix.SIGTERM), 143, 15, 0, ReasonError},
	} {
		got := exitOf(c.status, c.oom, time.Time{})
		if got.code != c.code || got.signal != c.signal || got.reason != c.reason {
			t.Errorf("%+v gave %+v", c, got)
		}
	}
}

func TestNamesThatAreNoFileNamesAreRefused(t *testing.T) {
	for _, name := range []string{"", ".", "..", "../x", "a/b", "-a", "a b", string(make([]byte, 65))} {
		if checkName("id", name) == nil {
			t.Errorf("%q is accepted", name)
		}
	}
	if err := checkName("id", "3f2a-web_1.0"); err != nil {
		t.Error(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	needsRoot(t)
	good := testConfig(t, testDir(t))
	for name, change := range map[string]func(*Config){
		"relative directory":      func(c *Config) { c.Dir = "run" },
		"no helper":               func(c *Config) { c.HelperPath = "/no/such/helper" },
		"not a program":           func(c *Config) { c.HelperPath = "/etc/passwd" },
		"helper in the run dir":   func(c *Config) { c.Dir = filepath.Dir(helperPath) },
		"cgroup root of the host": func(c *Config) { c.CgroupRoot = "/" },
		"no ledger":               func(c *Config) { c.Ledger = nil },
	} {
		cfg := good
		change(&cfg)
		if e, err := Open(cfg); err == nil {
			e.Close()
			t.Errorf("%s: accepted", name)
		}
	}
	e, err := Open(good)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if again, err := Open(good); err == nil {
		again.Close()
		t.Error("a run directory in use is opened twice")
	}
}

func TestUnknownThingsAreNotFound(t *testing.T) {
	h := newHost(t)
	ctx := h.ctx()
	_, err := h.StartContainer(ctx, h.spec("nopod", "true"))
	mustBe(t, err, ErrNotFound)
	mustBe(t, h.Kill(ctx, "none"), ErrNotFound)
	mustBe(t, h.Signal(ctx, "none", unix.SIGTERM), ErrNotFound)
	_, err = h.Exec(ctx, "none", ExecSpec{Args: []string{"true"}})
	mustBe(t, err, ErrNotFound)
	_, err = h.Stats(ctx, "none")
	mustBe(t, err, ErrNotFound)
	if err := h.RemoveContainer(ctx, "none"); err != nil {
		t.Error(err)
	}
	if err := h.RemoveSandbox(ctx, "none"); err != nil {
		t.Error(err)
	}
	h.sandbox("pod1")
	spec := h.spec("pod1", "sleep 1000")
	if _, err := h.StartContainer(ctx, spec); err != nil {
		t.Fatal(err)
	}
	_, err = h.StartContainer(ctx, spec)
	mustBe(t, err, ErrExists)
	if _, err := h.CreateSandbox(ctx, SandboxSpec{PodUID: "pod1"}); err != nil {
		t.Error("creating a sandbox again:", err)
	}
}
