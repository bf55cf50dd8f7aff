package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

// patience bounds what happens at once on an idle machine.
const patience = 10 * time.Second

// steered is a small tree behind a socket, with a pool of two.
func steered(t *testing.T, overrides ...catalog.Override) (*supervision.System, *LocalClient) {
	t.Helper()
	idle := func() supervision.Handler {
		return supervision.HandlerFunc(func(_ supervision.Context, msg any) error {
			if do, ok := msg.(func()); ok {
				do()
			}
			return nil
		})
	}
	pool, template := catalog.Row("pods"), catalog.Row("pod")
	pool.Template = &template
	root := group("node", group("store", worker("engine", idle), worker("maintenance", idle)), worker("scheduler", idle), group("kubelet", pool, worker("sync", idle)))
	if err := catalog.Apply(&root, overrides); err != nil {
		t.Fatal(err)
	}
	sys, err := supervision.New(supervision.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := sys.Start(root); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sys.Stop(context.Background()) })
	for _, id := range []string{"a", "b"} {
		sys.Pool("node/kubelet/pods").Ensure(id, idle)
	}
	return sys, socketOf(t, &steering{sys: sys, overrides: overrides, lease: noLease, gone: t.Context(), log: slog.New(slog.DiscardHandler)})
}

func socketOf(t *testing.T, s *steering) *LocalClient {
	t.Helper()
	path := filepath.Join(t.TempDir(), SocketFile)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	s.routes(mux)
	srv := &http.Server{Handler: mux}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	t.Cleanup(func() { srv.Close(); <-served })
	return NewLocalClient(path)
}

func paths(list ActorList) (out []string) {
	for _, a := range list.Actors {
		out = append(out, strings.TrimPrefix(a.Path, "node/"))
	}
	return out
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for %s", patience, what)
		}
	}
}

func TestLookingAtTheTree(t *testing.T) {
	_, c := steered(t)
	for _, q := range []struct {
		ActorQuery
		want string
	}{
		{ActorQuery{Depth: -1}, "node store store/engine store/maintenance scheduler kubelet kubelet/pods kubelet/sync"},
		{ActorQuery{Depth: -1, All: true}, "node store store/engine store/maintenance scheduler kubelet kubelet/pods kubelet/pods/a kubelet/pods/b kubelet/sync"},
		{ActorQuery{Path: "node/kubelet", Depth: -1}, "kubelet kubelet/pods kubelet/sync"},
		{ActorQuery{Path: "/node/kubelet/pods/", Depth: -1}, "kubelet/pods kubelet/pods/a kubelet/pods/b"},
		{ActorQuery{Path: "node/kubelet", Depth: 2}, "kubelet kubelet/pods kubelet/pods/a kubelet/pods/b kubelet/sync"},
		{ActorQuery{Path: "node/kubelet", Depth: 1}, "kubelet kubelet/pods kubelet/sync"},
		{ActorQuery{Path: "node/store/engine", Depth: 0}, "store/engine"},
		{ActorQuery{Path: "node/kubelet/pods/b", Depth: 0}, "kubelet/pods/b"},
	} {
		list, err := c.Actors(t.Context(), q.ActorQuery)
		if got := strings.Join(paths(list), " "); err != nil || got != q.want {
			t.Errorf("%+v shows %q (%v), want %q", q.ActorQuery, got, err, q.want)
		}
	}
	for path, want := range map[string]string{
		"node/store/engin":    "did you mean node/store/engine?",
		"kubelet":             "did you mean node/kubelet?",
		"node/kubelet/pods/c": "did you mean node/kubelet/pods",
		"elsewhere":           "nodeactor tree lists them",
	} {
		if _, err := c.Actors(t.Context(), ActorQuery{Path: path, Depth: -1}); err == nil || !strings.Contains(err.Error(), "there is no actor "+path) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// TestPoolsSpeakForTheirMembers holds that a collapsed pool shows what is wrong below it.
func TestPoolsSpeakForTheirMembers(t *testing.T) {
	sys, c := steered(t)
	if err := sys.Inject("node/kubelet/pods/a", supervision.Panic); err != nil {
		t.Fatal(err)
	}
	var line ActorLine
	eventually(t, "the pool to tell of its member", func() bool {
		list, err := c.Actors(t.Context(), ActorQuery{Path: "node/kubelet", Depth: 1})
		if err != nil {
			t.Fatal(err)
		}
		line = list.Actors[1]
		return line.LastFault != nil && line.Restarts == 1 && line.Members["running"] == 2
	})
	if line.Kind != KindPool || line.LastFault.Path != "node/kubelet/pods/a" || line.LastFault.Hash == "" {
		t.Errorf("the pool shows %+v", line)
	}
}

func TestCPUIsMeasuredOnDemand(t *testing.T) {
	_, c := steered(t)
	list, err := c.Actors(t.Context(), ActorQuery{Depth: -1, CPU: 20 * time.Millisecond})
	if err != nil || list.Actors[0].CPU == nil || list.Note != "" {
		t.Errorf("measured: %v %+v", err, list)
	}
	if list, err = c.Actors(t.Context(), ActorQuery{Depth: -1}); err != nil || list.Actors[0].CPU != nil {
		t.Errorf("not measured: %v %+v", err, list.Actors[0])
	}
	if _, err := c.Actors(t.Context(), ActorQuery{Depth: -1, CPU: time.Hour}); err == nil || !strings.Contains(err.Error(), "up to 30s") {
		t.Errorf("an hour is measured: %v", err)
	}
}

func TestRestartByHand(t *testing.T) {
	sys, c := steered(t)
	old, err := c.RestartActor(t.Context(), "node/scheduler")
	if err != nil || old.Generation != 1 {
		t.Fatalf("%+v %v", old, err)
	}
	eventually(t, "generation 2", func() bool {
		n, _ := find(sys.Inspect().Root, "node/scheduler")
		return n.Generation == 2 && n.State.String() == "running"
	})
	for path, want := range map[string]string{
		"node":             "node/store, node/scheduler, node/kubelet",
		"node/shceduler":   "did you mean node/scheduler?",
		"":                 "there is no actor",
		"node/kubelet/pod": "did you mean node/kubelet/pods",
	} {
		if _, err := c.RestartActor(t.Context(), path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("restart of %q: %v, want %q", path, err, want)
		}
	}
}

func faultsOf(t *testing.T, c *LocalClient, path string, after time.Time) (out []FaultLine, err error) {
	t.Helper()
	err = c.Faults(t.Context(), path, after, false, func(l FaultLine) error { out = append(out, l); return nil })
	return out, err
}

func TestFaultsAreListedAndFollowed(t *testing.T) {
	sys, c := steered(t)
	if err := sys.Inject("node/store/engine", supervision.Panic); err != nil {
		t.Fatal(err)
	}
	var found []FaultLine
	eventually(t, "the fault", func() bool {
		var err error
		if found, err = faultsOf(t, c, "node/store", time.Time{}); err != nil {
			t.Fatal(err)
		}
		return len(found) == 1
	})
	if f := found[0]; f.Path != "node/store/engine" || f.Kind != "Panic" || f.Generation != 1 || !f.HasStack || !strings.Contains(f.Error, "injected") {
		t.Errorf("listed as %+v", f)
	}
	if other, err := faultsOf(t, c, "node/scheduler", time.Time{}); err != nil || len(other) != 0 {
		t.Errorf("below another path: %v %v", other, err)
	}
	if later, err := faultsOf(t, c, "", found[0].At); err != nil || len(later) != 0 {
		t.Errorf("after the last: %v %v", later, err)
	}
	if _, err := faultsOf(t, c, "node/stor", time.Time{}); err == nil || !strings.Contains(err.Error(), "did you mean node/store?") {
		t.Errorf("an unknown path: %v", err)
	}
	text, err := c.FaultStack(t.Context(), found[0].Hash)
	if err != nil || !strings.Contains(text, "1 of the kept faults") || !strings.Contains(text, "guard.go") {
		t.Errorf("the stack: %v\n%s", err, text)
	}
	if _, err := c.FaultStack(t.Context(), "nope"); err == nil || !strings.Contains(err.Error(), `hash "nope"`) {
		t.Errorf("an unknown hash: %v", err)
	}
	followed(t, sys, c)
}

// followed holds that a follower gets what was kept and what comes, each once.
func followed(t *testing.T, sys *supervision.System, c *LocalClient) {
	enough := errors.New("enough")
	var seen []string
	err := c.Faults(t.Context(), "", time.Time{}, true, func(l FaultLine) error {
		seen = append(seen, fmt.Sprint(l.Path, "#", l.Generation))
		if len(seen) == 1 {
			if err := sys.Inject("node/scheduler", supervision.Panic); err != nil {
				t.Error(err)
			}
			return nil
		}
		return enough
	})
	if want := []string{"node/store/engine#1", "node/scheduler#1"}; !errors.Is(err, enough) || !slices.Equal(seen, want) {
		t.Errorf("followed %v (%v), want %v", seen, err, want)
	}
}

func TestPoliciesOfTheRunningTree(t *testing.T) {
	o := catalog.Override{Path: "node/kubelet/pods/*", Windows: &catalog.Windows{Hang: "45s"}, Source: "c.yaml: faultPolicies[0]"}
	_, c := steered(t, o)
	all, err := c.Policies(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(e catalog.Effective) bool { return e.Path == o.Path })
	if i < 0 || all[i].Hang != (catalog.Value{Value: "45s", From: o.Source}) || all[i].Stop.From != "" {
		t.Errorf("the policies are %+v", all)
	}
}

// TestZombiesAreShown holds that a generation that would not stop stays visible, with what it
// was doing.
func TestZombiesAreShown(t *testing.T) {
	sys, c := steered(t, catalog.Override{Path: "node/scheduler", Windows: &catalog.Windows{Hang: "100ms", Stop: "100ms"}})
	release := make(chan struct{})
	defer close(release)
	sys.Send(sys.Ref("node/scheduler"), func() { <-release })
	var line ActorLine
	eventually(t, "the scheduler to be replaced", func() bool {
		list, err := c.Actors(t.Context(), ActorQuery{Path: "node/scheduler", Depth: 0})
		if err != nil {
			t.Fatal(err)
		}
		line = list.Actors[0]
		return line.State == "running" && line.Generation == 2
	})
	if line.Abandoned != 1 || len(line.Zombies) != 1 || line.Zombies[0].Generation != 1 || line.Zombies[0].Fault == nil || line.Zombies[0].Fault.Kind != "Hang" {
		t.Fatalf("shown as %+v", line)
	}
	text, err := c.FaultStack(t.Context(), line.Zombies[0].Hash)
	if err != nil || !strings.Contains(text, "TestZombiesAreShown") {
		t.Errorf("its stack: %v\n%s", err, text)
	}
}

// TestSlowFollowersAreToldWhatTheyMissed holds that a reader who does not read costs nothing
// but its own completeness.
func TestSlowFollowersAreToldWhatTheyMissed(t *testing.T) {
	sys, _ := steered(t)
	s := &steering{sys: sys}
	news, lost, cancel := s.subscribe("node/kubelet")
	defer cancel()
	for i := range followBuffer + 5 {
		sys.Report(supervision.Fault{Kind: supervision.ErrorReturn, Path: "node/kubelet/sync", Generation: uint64(i), Err: errors.New("flood")})
		sys.Report(supervision.Fault{Kind: supervision.ErrorReturn, Path: "node/kubeletry", Err: errors.New("of somebody else")})
	}
	if len(news) != followBuffer || lost.Load() != 5 {
		t.Errorf("%d wait and %d are lost, want %d and 5", len(news), lost.Load(), followBuffer)
	}
}
