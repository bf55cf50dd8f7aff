package program

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/nodeactor/nodeactor/actors/node"
	"github.com/nodeactor/nodeactor/test/golden"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) *time.Time {
	t := noon.Add(d)
	return &t
}

func share(v float64) *float64 { return &v }

// sample has one actor of each condition.
func sample() node.ActorList {
	fault := &node.FaultLine{At: noon.Add(-90 * time.Second), Kind: "Panic", Path: "node/scheduler", Hash: "1f0c9a4e", Error: "panic: two\nlines"}
	return node.ActorList{At: noon, Actors: []node.ActorLine{
		{Path: "node", Row: "node", Kind: node.KindSupervisor, State: "running", Generation: 1, CPU: share(0), Lease: "-", Since: at(-time.Hour)},
		{Path: "node/store/engine", Row: "engine", Kind: node.KindWorker, State: "running", Hung: true, Generation: 1, Mailbox: 12, OldestSeconds: 0.25, CPU: share(0.034), Lease: "store", BusyWith: "engine.compact", BusySeconds: 41, Since: at(-time.Hour), Handled: 7, Jobs: 1},
		{Path: "node/scheduler", Row: "scheduler", Kind: node.KindWorker, State: "backing-off", Generation: 4, Restarts: 3, LastFault: fault, NextTry: at(8 * time.Second), CPU: share(1.2), Abandoned: 1, Since: at(-time.Second)},
		{Path: "node/kubelet/pods", Row: "pods", Kind: node.KindPool, State: "running", Generation: 1, Restarts: 9, Mailbox: 3, OldestSeconds: 75, Members: map[string]int{"running": 40, "parked": 2, "dead": 1}, Since: at(-2 * time.Minute)},
	}}
}

// visible makes the commands to the terminal readable.
func visible(s string) string {
	return strings.NewReplacer(home, "<home>", clearLine, "", clearBelow, "<end>\n", reversed, "<rev>", plain, "</rev>").Replace(s)
}

func TestTreeOnPaper(t *testing.T) {
	golden.Check(t, "testdata/tree.golden", []byte(strings.Join(table(sample(), false), "\n")+"\n\n"+strings.Join(table(sample(), true), "\n")+"\n"))
}

// TestTreeOnATerminal holds the live picture: sorted, cut to the window, scrolled, and wide
// paths without their beginning.
func TestTreeOnATerminal(t *testing.T) {
	s := &screen{sort: "tree", list: sample()}
	pictures := visible(s.draw(200, 40))
	s.key('m')
	s.list.Actors[3].Path = "node/controllers/deployment/manifests/default:a-rather-long-name-of-a-deployment"
	pictures += visible(s.draw(120, 6))
	for _, b := range []byte("jjjjjj\x1b[A") {
		s.key(b)
	}
	pictures += visible(s.draw(120, 6))
	golden.Check(t, "testdata/live.golden", []byte(pictures))
	if s.list.Actors[3].Path[0] != 'n' {
		t.Error("drawing changed what was seen")
	}
}

func TestKeys(t *testing.T) {
	s := &screen{sort: "tree", list: sample()}
	if quit, ask := s.key('a'); quit || !ask || !s.query.All {
		t.Error("a does not ask for the members")
	}
	if quit, _ := s.key('q'); !quit {
		t.Error("q does not end")
	}
	for key, sort := range liveKeys {
		if s.key(key); s.sort != sort {
			t.Errorf("%c sorts by %s, want %s", key, s.sort, sort)
		}
	}
	if strings.Join(sortKeys, " ") != "tree cpu mailbox oldest restarts fault" || len(liveKeys) != len(sortKeys) {
		t.Error("keys and --sort know different columns")
	}
	s.key(' ')
	s.take(seen{list: node.ActorList{}})
	if len(s.list.Actors) == 0 {
		t.Error("a held picture moved")
	}
	s.key(' ')
	s.take(seen{list: node.ActorList{}})
	if len(s.list.Actors) != 0 {
		t.Error("a picture that is not held stands still")
	}
}

func TestSorting(t *testing.T) {
	for key, first := range map[string]string{
		"tree": "node", "cpu": "node/scheduler", "mailbox": "node/store/engine", "oldest": "node/kubelet/pods", "restarts": "node/kubelet/pods", "fault": "node/scheduler",
	} {
		lines := sample().Actors
		if sortActors(lines, key); lines[0].Path != first {
			t.Errorf("by %s %s is first, want %s", key, lines[0].Path, first)
		}
	}
}

func TestOfferedPaths(t *testing.T) {
	words, directive := offer(sample().Actors, "node/s")
	if len(words) != 2 || !strings.HasPrefix(words[0], "node/store/engine\tengine, running, hung") || directive&cobra.ShellCompDirectiveNoSpace != 0 {
		t.Errorf("offered %q %v", words, directive)
	}
	if words, directive = offer(sample().Actors, "node/k"); len(words) != 1 || directive&cobra.ShellCompDirectiveNoSpace == 0 {
		t.Errorf("offered %q %v: nothing could follow a pool", words, directive)
	}
}

func TestFlagsAreChecked(t *testing.T) {
	for args, want := range map[string]string{
		"tree -o jsn":                   `--output "jsn" is not one of table, wide, json or yaml; did you mean json?`,
		"tree --sort memory":            `--sort "memory" is not one of tree, cpu, mailbox, oldest, restarts or fault`,
		"tree --interval 1ms":           "--interval 1ms is not between 100ms and 1m",
		"tree node/a node/b":            "give one path, not 2",
		"faults -o yaml":                `--output "yaml" is not one of table or json`,
		"restart":                       "give the path of an actor, such as node/core/scheduler",
		"snapshot lits":                 `unknown command "lits" for "nodeactor snapshot"; did you mean list?`,
		"etcd bogus":                    `unknown command "bogus" for "nodeactor etcd"; nodeactor etcd --help lists them`,
		"tree --data-dir /no":           "no node runs on /no; start one with: nodeactor run --data-dir /no",
		"restart node/x --data-dir /no": "no node runs on /no",
		"faults --data-dir /no":         "no node runs on /no",
	} {
		cmd := rootCommand()
		cmd.SetArgs(strings.Fields(args))
		if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}
