package play

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nodeactor/nodeactor/supervision/core"
)

// errWord is returned when a transcript has a word that nobody knows.
var errWord = errors.New("unknown word")

// group plays a core.Group.
type group struct {
	spec     core.GroupSpec
	children []core.ChildSpec
	group    *core.Group
	began    time.Time
}

// Group plays the transcript of a group of children. A line is a declaration or an event:
//
//	group STRATEGY max=N within=D slow-max=N slow-within=D abandoned=N
//	child ID TYPE [significant] [panic=stop|park|escalate] ...
//	TIME EVENT [CHILD[#GEN]] [FAULT]
//
// The answers are the actions, and the states of all children after "=".
func Group() Player { return &group{began: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

// Line implements Player.
func (p *group) Line(words []string) ([]string, error) {
	switch words[0] {
	case "group":
		return nil, p.declareGroup(words[1:])
	case "child":
		return nil, p.declareChild(words[1:])
	}
	return p.event(words)
}

var strategies = map[string]core.Strategy{"one_for_one": core.OneForOne, "one_for_all": core.OneForAll, "rest_for_one": core.RestForOne}

func (p *group) declareGroup(words []string) (err error) {
	if len(words) == 0 || strategies[words[0]] == 0 {
		return fmt.Errorf("%w: no such strategy", errWord)
	}
	p.spec = core.GroupSpec{
		Strategy: strategies[words[0]], Intensity: core.Intensity{Max: 3, Within: 10 * time.Second},
		Sustained: core.Intensity{Max: 1000, Within: 24 * time.Hour}, MaxAbandoned: 2,
	}
	for _, opt := range words[1:] {
		if err := p.limit(opt); err != nil {
			return err
		}
	}
	return nil
}

func (p *group) limit(opt string) (err error) {
	name, value, _ := strings.Cut(opt, "=")
	switch name {
	case "max":
		p.spec.Intensity.Max, err = strconv.Atoi(value)
	case "within":
		p.spec.Intensity.Within, err = time.ParseDuration(value)
	case "slow-max":
		p.spec.Sustained.Max, err = strconv.Atoi(value)
	case "slow-within":
		p.spec.Sustained.Within, err = time.ParseDuration(value)
	case "abandoned":
		p.spec.MaxAbandoned, err = strconv.Atoi(value)
	default:
		err = fmt.Errorf("%w: %s", errWord, name)
	}
	return err
}

var (
	restarts  = map[string]core.Restart{"permanent": core.Permanent, "transient": core.Transient, "temporary": core.Temporary}
	reactions = map[string]core.ReactionKind{"stop": core.DoStop, "park": core.DoPark, "escalate": core.DoEscalate}
)

func (p *group) declareChild(words []string) error {
	if len(words) == 0 {
		return fmt.Errorf("%w: a child without a name", errWord)
	}
	c := child(words[0])
	for _, opt := range words[1:] {
		if err := describe(&c, opt); err != nil {
			return err
		}
	}
	p.children = append(p.children, c)
	return nil
}

func describe(c *core.ChildSpec, opt string) error {
	kind, do, isCell := strings.Cut(opt, "=")
	switch {
	case isCell:
		k, ok := core.ParseFaultKind(kind)
		if !ok || reactions[do] == 0 {
			return fmt.Errorf("%w: %s", errWord, opt)
		}
		c.Policy[k].Do = reactions[do]
	case opt == "significant":
		c.Significant = true
	case restarts[opt] == 0:
		return fmt.Errorf("%w: %s", errWord, opt)
	default:
		c.Restart = restarts[opt]
	}
	return nil
}

// child is what a child is unless it is described otherwise.
func child(id string) core.ChildSpec {
	r := core.Reaction{Do: core.DoRestart, Backoff: core.Backoff{Initial: time.Second, Factor: 2, Cap: 8 * time.Second, Reset: time.Minute}}
	return core.ChildSpec{
		ID: id, Row: id, Kind: core.Worker, Restart: core.Permanent,
		StartTimeout: time.Second, HangAfter: time.Second, StopTimeout: 5 * time.Second,
		Mailbox: core.Mailbox{Limit: 1, Overflow: core.RejectNewest}, Policy: [core.NumFaultKinds]core.Reaction{r, r, r, r},
	}
}

var events = map[string]core.EventKind{
	"start": core.GroupStart, "stop": core.GroupStop, "ready": core.ChildReady, "fault": core.ChildFault, "exited": core.ChildExited,
	"finished": core.ChildExited, "stop-elapsed": core.StopElapsed, "backoff-elapsed": core.BackoffElapsed,
	"restart": core.ChildRestart, "zombie-returned": core.ZombieReturned, "overrun": core.GroupFault,
}

func (p *group) event(words []string) (answers []string, err error) {
	if p.group == nil {
		p.group = core.NewGroup(p.spec, p.children, func() float64 { return 0 })
	}
	at, err := time.ParseDuration(words[0])
	if err != nil || len(words) < 2 || events[words[1]] == 0 {
		return nil, fmt.Errorf("%w: no such event", errWord)
	}
	e := core.Event{Kind: events[words[1]], Normal: words[1] == "finished", Fault: core.Hang}
	for _, word := range words[2:] {
		if k, ok := core.ParseFaultKind(word); ok {
			e.Fault = k
		} else if e.Child, e.Gen, err = p.child(word); err != nil {
			return nil, err
		}
	}
	for _, a := range p.group.Step(p.began.Add(at), e) {
		answers = append(answers, p.show(a))
	}
	return append(answers, "= "+p.states()), nil
}

// child reads NAME or NAME#GENERATION; without it the current one is meant.
func (p *group) child(word string) (int, uint64, error) {
	id, gen, explicit := strings.Cut(word, "#")
	for i := range p.children {
		if p.children[i].ID != id {
			continue
		}
		if explicit {
			n, err := strconv.ParseUint(gen, 10, 64)
			return i, n, err
		}
		return i, p.group.Children()[i].Gen, nil
	}
	return 0, 0, fmt.Errorf("%w: no child %s", errWord, word)
}

func (p *group) show(a core.Action) string {
	name := fmt.Sprintf("%s#%d", p.children[a.Child].ID, a.Gen)
	switch a.Kind {
	case core.StartChild:
		return "start " + name
	case core.StopChild:
		return "stop " + name
	case core.AbandonChild:
		return "abandon " + name
	case core.Wait:
		return fmt.Sprintf("wait %s for %s", a.Delay, name)
	case core.GroupReady:
		return "group ready"
	case core.GroupStopped:
		return "group stopped"
	case core.GroupDone:
		return "group done"
	}
	return fmt.Sprintf("escalate %s of %s", a.Fault, name)
}

func (p *group) states() string {
	var words []string
	for _, c := range p.group.Children() {
		words = append(words, fmt.Sprintf("%s#%d:%s", c.Spec.ID, c.Gen, c.State))
	}
	return strings.Join(words, " ")
}
