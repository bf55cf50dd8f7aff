package node

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

func nested() supervision.Fault {
	f := supervision.Fault{Kind: supervision.Panic, Path: "node/kubelet/sync", Generation: 4, Message: "job list", Err: errors.New("panic: two\nlines"), Stack: []byte("main.f()")}
	f = supervision.Fault{Kind: supervision.Panic, Path: "node/kubelet", Generation: 1, Message: "escalation", Err: f}
	return supervision.Fault{Kind: supervision.Panic, Path: "node", Generation: 1, Message: "escalation", Err: f}
}

// TestGivingUpIsRecorded holds that the first cause is told in one line, kept for the next
// start, and forgotten by a run that is told to stop.
func TestGivingUpIsRecorded(t *testing.T) {
	dir := t.TempDir()
	p := &parts{cfg: Config{DataDir: dir}, clock: supervision.RealClock(), log: slog.New(slog.DiscardHandler)}
	if _, ok := ReadLastExit(dir); ok {
		t.Error("a fresh directory remembers an exit")
	}
	_, err := p.recordExit(time.Now(), Report{Containers: 2}, fmt.Errorf("%w: %w", ErrGaveUp, nested()))
	if !errors.Is(err, ErrGaveUp) || strings.Contains(err.Error(), "\n") {
		t.Errorf("the reason is %q", err)
	}
	const want = "Panic of node/kubelet/sync#4 in job list: panic: two lines, escalated through node/kubelet, node"
	if !strings.Contains(err.Error(), want+"; 2 containers keep running") {
		t.Errorf("the reason is %q", err)
	}
	last, ok := ReadLastExit(dir)
	if !ok || last.Reason != want || last.ExitCode != ExitGaveUp || last.Fault.Path != "node/kubelet/sync" || last.Stack != "main.f()" || last.Containers != 2 {
		t.Errorf("recorded as %+v", last)
	}
	other := errors.New("cannot open something")
	if _, err := p.recordExit(time.Now(), Report{}, other); err != other {
		t.Errorf("an error that is no fault becomes %v", err)
	}
	if _, err := p.recordExit(time.Now(), Report{}, fmt.Errorf("%w: %w", supervision.ErrStart, nested())); !errors.Is(err, ErrGaveUp) {
		t.Errorf("a tree that gave up while it started: %v", err)
	}
	if _, err := p.recordExit(time.Now(), Report{}, nil); err != nil {
		t.Error(err)
	}
	if _, ok := ReadLastExit(dir); ok {
		t.Error("a run that was told to stop remembers the exit of another")
	}
}

// TestOverridesOfTheProductsTree holds overrides against the real tree before anything of a
// node is opened.
func TestOverridesOfTheProductsTree(t *testing.T) {
	escalate := map[string]catalog.Cell{"panic": {Do: "escalate"}, "hang": {Do: "escalate"}, "errorReturn": {Do: "escalate"}, "bindFailure": {Do: "escalate"}}
	c := Config{NodeName: "n"}.WithDefaults()
	c.FaultPolicies = []catalog.Override{
		{Path: "node/controllers/deployment/manifests/*", On: escalate, Source: "here"},
		{Row: "listener", Windows: &catalog.Windows{Stop: "7s"}, Source: "there"},
	}
	all, err := EffectivePolicies(c)
	if err != nil {
		t.Fatal(err)
	}
	changed := ""
	for _, e := range all {
		if e.On[0].From != "" || e.Stop.From != "" {
			changed += fmt.Sprintln(e.Path, e.On[0].Do, e.On[0].From, e.Stop.Value, e.Stop.From)
		}
	}
	const want = "node/api/listeners/listener restart  7s there\nnode/controllers/deployment/manifests/* escalate here 10s \n"
	if changed != want {
		t.Errorf("changed:\n%swant:\n%s", changed, want)
	}
	c.FaultPolicies = []catalog.Override{{Path: "node/kublet", On: escalate, Source: "a"}, {Path: "node/core/scheduler", On: map[string]catalog.Cell{}, Source: "b"}}
	_, err = EffectivePolicies(c)
	if !errors.Is(err, catalog.ErrOverride) || strings.Count(err.Error(), "\n") != 4 || !strings.Contains(err.Error(), "did you mean node/kubelet?") {
		t.Errorf("want one line for each of five findings: %v", err)
	}
}

// TestSupervisorsOutliveTheirChildren holds on the real tree that no supervisor is given up
// while a child of it is still within its own window.
func TestSupervisorsOutliveTheirChildren(t *testing.T) {
	root, err := Blueprint(Config{NodeName: "n", DataDir: t.TempDir()}.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	var need func(s *supervision.Spec) (start, stop time.Duration)
	need = func(s *supervision.Spec) (start, stop time.Duration) {
		if len(s.Children) == 0 && s.Template == nil {
			return s.StartTimeout, s.StopTimeout
		}
		for i := range s.Children {
			childStart, childStop := need(&s.Children[i])
			start, stop = start+childStart, stop+childStop
		}
		if s.Template != nil {
			stop += s.Template.StopTimeout
		}
		if s.StartTimeout < start || s.StopTimeout < stop {
			t.Errorf("%s is given %v to start and %v to stop; its children may need %v and %v", s.ID, s.StartTimeout, s.StopTimeout, start, stop)
		}
		return start, stop
	}
	start, stop := need(&root)
	t.Logf("the whole node may take %v to start and %v to stop", start, stop)
}
