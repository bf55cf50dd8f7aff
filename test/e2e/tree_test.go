package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// actorLine is what the tests read of one line of `tree -o json`.
type actorLine struct {
	Path, Kind, State string
	Generation        uint64
	LastFault         *struct{ Kind, Path, Hash string }
}

// tool runs a command on the node under test; it must succeed.
func (h *host) tool(args ...string) string {
	h.t.Helper()
	out, err := h.run(podLimit, nil, append(args, "--data-dir", h.dir)...)
	must(h.t, err)
	return out
}

// refusedTool runs a command on the node that must be refused in one line.
func (h *host) refusedTool(want []string, args ...string) {
	h.t.Helper()
	h.refused(h.t, want, append(args, "--data-dir", h.dir)...)
}

// actor looks at one actor.
func (h *host) actor(path string) actorLine {
	h.t.Helper()
	var list struct{ Actors []actorLine }
	must(h.t, json.Unmarshal([]byte(h.tool("tree", path, "--depth", "0", "--cpu", "0", "-o", "json")), &list))
	if len(list.Actors) != 1 {
		h.t.Fatalf("%s is shown as %+v", path, list.Actors)
	}
	return list.Actors[0]
}

// TestTreeFaultsRestart sees and steers the tree of a real node from the command line.
func TestTreeFaultsRestart(t *testing.T) {
	h := newHost(t, 7)
	h.refusedTool([]string{"no node runs on " + h.dir, "nodeactor run --data-dir " + h.dir}, "tree")
	h.start()
	t.Run("tree", func(t *testing.T) {
		mustContain(t, "tree", h.tool("tree"), "PATH", "LAST FAULT", "NEXT TRY", "node/store/engine ", "node/controllers/deployment/manifests ", "node/kubelet/pods ", "pods (0)", "running", "%")
		out := h.tool("tree", "node/kubelet", "--cpu", "0")
		mustContain(t, "part of the tree", out, "node/kubelet/sync ")
		if strings.Contains(out, "node/core/scheduler") {
			t.Errorf("what was not asked for is shown:\n%s", out)
		}
		offered, err := h.run(podLimit, nil, "__complete", "restart", "--data-dir", h.dir, "node/kubelet/node-")
		must(t, err)
		mustContain(t, "completion", offered, "node/kubelet/node-status", "node/kubelet/node-lease")
		h.refusedTool([]string{"there is no actor node/core/shceduler", "did you mean node/core/scheduler?"}, "tree", "node/core/shceduler")
	})
	t.Run("faults", func(t *testing.T) { seeFaults(t, h) })
	t.Run("restart", func(t *testing.T) { restartParts(t, h) })
	t.Run("live", func(t *testing.T) { liveTree(t, h) })
	t.Run("policies", func(t *testing.T) { policies(t, h) })
}

// seeFaults follows the list of faults while one is injected.
func seeFaults(t *testing.T, h *host) {
	const path = "node/controllers/deployment/dispatcher"
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, filepath.Join(h.bin, "nodeactor"), "faults", "-f", "--data-dir", h.dir, "node/controllers")
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	defer func() { cancel(); _ = c.Wait() }()
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("no heading: %v", lines.Err())
	}
	must(t, h.inject(path, "panic"))
	if !lines.Scan() {
		t.Fatalf("the fault was not followed: %v", lines.Err())
	}
	mustContain(t, "faults -f", lines.Text(), "Panic", path+"#1", "injected panic")
	var kept []struct{ Path, Kind, Hash string }
	must(t, json.Unmarshal([]byte(h.tool("faults", "-o", "json", path)), &kept))
	if len(kept) != 1 || kept[0].Kind != "Panic" {
		t.Fatalf("kept are %+v", kept)
	}
	mustContain(t, "the stack", h.tool("faults", "--stack", kept[0].Hash), "supervision.(*cell)", "injected panic")
	h.eventually(podLimit, "the tree to show the fault and the next generation", func() error {
		if a := h.actor(path); a.Generation != 2 || a.State != "running" || a.LastFault == nil || a.LastFault.Hash != kept[0].Hash {
			return notYet("%+v", a)
		}
		return nil
	})
	h.refusedTool([]string{"did you mean node/controllers?"}, "faults", "node/controller")
	h.refusedTool([]string{"no kept fault has a stack"}, "faults", "--stack", "12345678")
}

var generations = regexp.MustCompile(`generation (\d+) -> (\d+), running after \S+`)

func restartParts(t *testing.T, h *host) {
	// The listeners include the socket that the command itself uses.
	for _, path := range []string{"node/core/scheduler", "node/controllers/deployment", "node/api/listeners"} {
		before := h.actor(path).Generation
		out := h.tool("restart", path)
		if after := h.actor(path); after.Generation <= before || after.State != "running" || !generations.MatchString(out) {
			t.Errorf("%s was %d and is %+v: %s", path, before, after, out)
		}
	}
	h.refusedTool([]string{"cannot restart node", "node/core"}, "restart", "node")
	h.refusedTool([]string{"there is no actor node/kublet", "did you mean node/kubelet?"}, "restart", "node/kublet")
}

// liveTree looks at the live picture through a real terminal and ends it by a key.
func liveTree(t *testing.T, h *host) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, "script", "-qec", "stty rows 20 cols 120; "+filepath.Join(h.bin, "nodeactor")+" tree --interval 100ms --data-dir "+h.dir, "/dev/null")
	in, err := c.StdinPipe()
	must(t, err)
	var out strings.Builder
	c.Stdout = &out
	must(t, c.Start())
	time.Sleep(time.Second)
	_, err = in.Write([]byte("cq"))
	must(t, err)
	must(t, c.Wait())
	mustContain(t, "the live tree", out.String(), "actors, ", "by tree", "by cpu", "node/store/engine", "\x1b[?1049l")
}

const wrongPolicies = `
faultPolicies:
- path: node/core/schedular
  on: {panic: {do: park}, hang: {do: park}, errorReturn: {do: park}, bindFailure: {do: park}}
- path: node/core/scheduler
  on: {panic: {do: restrat}, hang: {do: park}, errorReturn: {do: park}}
`

func policies(t *testing.T, h *host) {
	mustContain(t, "policies", h.tool("tree", "node/kubelet/pods", "--policies"), "node/kubelet/pods/*", "pool", "restart A", "nothing is overridden")
	file, dir := filepath.Join(h.dir, "wrong.yaml"), filepath.Join(t.TempDir(), "never")
	must(t, os.WriteFile(file, []byte(wrongPolicies), 0o600))
	out, err := h.run(podLimit, nil, "run", "--config", file, "--data-dir", dir)
	if err == nil || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("wrong policies are accepted: %v", err)
	}
	for i, want := range []string{
		file + ": faultPolicies[0]: node/core/schedular: there is no such child; did you mean node/core/scheduler?",
		file + `: faultPolicies[1]: node/core/scheduler: on.panic.do "restrat" is not restart, stop, escalate or park; did you mean restart?`,
		file + ": faultPolicies[1]: node/core/scheduler: on.bindFailure is open; fill all of panic, hang, errorReturn and bindFailure",
	} {
		if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != 3 || !strings.Contains(out, want) {
			t.Errorf("want three lines, the %d. with %q, got:\n%s", i+1, want, out)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a refused node made its data directory")
	}
}
