package core

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// update rewrites the transcripts. Commit only what you have read and understood.
var update = flag.Bool("update", false, "rewrite testdata/*.play")

// TestTranscripts replays testdata/*.play. A line is either a comment, a declaration or an
// event; what the group answers is written below an event, indented.
//
//	group STRATEGY max=N within=D [slow-max=N slow-within=D] abandoned=N
//	child ID TYPE [significant] [panic=stop|park|escalate] ...
//	TIME EVENT [CHILD[#GEN]] [FAULT]
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.play")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".play"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := replay(t, want)
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s: the group plays something else (-update rewrites it):\n%s", file, got)
			}
		})
	}
}

// play is one replay.
type play struct {
	t        *testing.T
	out      bytes.Buffer
	spec     GroupSpec
	children []ChildSpec
	group    *Group
	began    time.Time
}

func replay(t *testing.T, script []byte) []byte {
	p := &play{t: t, began: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	for lines := bufio.NewScanner(bytes.NewReader(script)); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "    ") {
			continue
		}
		fmt.Fprintln(&p.out, line)
		if f := strings.Fields(line); len(f) > 0 && f[0] != "#" {
			p.line(f)
		}
	}
	return p.out.Bytes()
}

func (p *play) line(f []string) {
	switch f[0] {
	case "group":
		p.declareGroup(f[1:])
	case "child":
		p.declareChild(f[1:])
	default:
		p.event(f)
	}
}

func (p *play) declareGroup(f []string) {
	strategies := map[string]Strategy{"one_for_one": OneForOne, "one_for_all": OneForAll, "rest_for_one": RestForOne}
	p.spec = GroupSpec{
		Strategy: strategies[f[0]], Intensity: Intensity{Max: 3, Within: 10 * time.Second},
		Sustained: Intensity{Max: 1000, Within: 24 * time.Hour}, MaxAbandoned: 2,
	}
	for _, opt := range f[1:] {
		name, value, _ := strings.Cut(opt, "=")
		switch name {
		case "max":
			p.spec.Intensity.Max = p.number(value)
		case "within":
			p.spec.Intensity.Within = p.duration(value)
		case "slow-max":
			p.spec.Sustained.Max = p.number(value)
		case "slow-within":
			p.spec.Sustained.Within = p.duration(value)
		case "abandoned":
			p.spec.MaxAbandoned = p.number(value)
		}
	}
}

func (p *play) declareChild(f []string) {
	c := testChild(f[0])
	for _, opt := range f[1:] {
		kind, do, isCell := strings.Cut(opt, "=")
		switch {
		case isCell:
			k, ok := ParseFaultKind(kind)
			if !ok {
				p.t.Fatalf("fault kind %q", kind)
			}
			c.Policy[k].Do = map[string]ReactionKind{"stop": DoStop, "park": DoPark, "escalate": DoEscalate}[do]
		case opt == "significant":
			c.Significant = true
		default:
			c.Restart = map[string]Restart{"permanent": Permanent, "transient": Transient, "temporary": Temporary}[opt]
		}
	}
	p.children = append(p.children, c)
}

func testChild(id string) ChildSpec {
	r := Reaction{Do: DoRestart, Backoff: Backoff{Initial: time.Second, Factor: 2, Cap: 8 * time.Second, Reset: time.Minute}}
	return ChildSpec{
		ID: id, Row: id, Kind: Worker, Restart: Permanent,
		StartTimeout: time.Second, HangAfter: time.Second, StopTimeout: 5 * time.Second,
		Mailbox: Mailbox{Limit: 1, Overflow: RejectNewest}, Policy: [NumFaultKinds]Reaction{r, r, r, r},
	}
}

var eventNames = map[string]EventKind{
	"start": GroupStart, "stop": GroupStop, "ready": ChildReady, "fault": ChildFault, "exited": ChildExited, "finished": ChildExited,
	"stop-elapsed": StopElapsed, "backoff-elapsed": BackoffElapsed, "restart": ChildRestart, "zombie-returned": ZombieReturned, "overrun": GroupFault,
}

func (p *play) event(f []string) {
	if p.group == nil {
		p.group = NewGroup(p.spec, p.children, func() float64 { return 0 })
	}
	kind, ok := eventNames[f[1]]
	if !ok {
		p.t.Fatalf("event %q", f[1])
	}
	e := Event{Kind: kind, Normal: f[1] == "finished", Fault: Hang}
	for _, word := range f[2:] {
		if k, ok := ParseFaultKind(word); ok {
			e.Fault = k
			continue
		}
		e.Child, e.Gen = p.child(word)
	}
	for _, a := range p.group.Step(p.began.Add(p.duration(f[0])), e) {
		fmt.Fprintf(&p.out, "    %s\n", p.show(a))
	}
	fmt.Fprintf(&p.out, "    = %s\n", p.states())
}

// child reads NAME or NAME#GENERATION; without it the current one is meant.
func (p *play) child(word string) (int, uint64) {
	id, gen, explicit := strings.Cut(word, "#")
	for i := range p.children {
		if p.children[i].ID != id {
			continue
		}
		if explicit {
			return i, uint64(p.number(gen))
		}
		return i, p.group.Children()[i].Gen
	}
	p.t.Fatalf("child %q", word)
	return 0, 0
}

func (p *play) show(a Action) string {
	name := fmt.Sprintf("%s#%d", p.children[a.Child].ID, a.Gen)
	switch a.Kind {
	case StartChild:
		return "start " + name
	case StopChild:
		return "stop " + name
	case AbandonChild:
		return "abandon " + name
	case Wait:
		return fmt.Sprintf("wait %s for %s", a.Delay, name)
	case GroupReady:
		return "group ready"
	case GroupStopped:
		return "group stopped"
	case GroupDone:
		return "group done"
	default:
		return fmt.Sprintf("escalate %s of %s", a.Fault, name)
	}
}

func (p *play) states() string {
	var words []string
	for _, c := range p.group.Children() {
		words = append(words, fmt.Sprintf("%s#%d:%s", c.Spec.ID, c.Gen, c.State))
	}
	return strings.Join(words, " ")
}

func (p *play) number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

func (p *play) duration(s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		p.t.Fatal(err)
	}
	return d
}
