package lease

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision/core/play"
	"github.com/nodeactor/nodeactor/test/golden"
)

// script plays a transcript with nodes that share one store; what one stores the others see at once. The lines:
//
//	boot NODE BOOT          a node boots; an earlier boot of it is gone
//	manifest NAME [gone]    there is a manifest, or no more
//	pass TIME               time passes for all that run
//	start NODE NAME         work begins; done NODE NAME: it ends
//	effect NODE NAME        what runs there writes
//	dead NODE, alive NODE   membership says so of its present boot, to all others
//	pause NODE, resume NODE the process is stopped and goes on
//	kill NODE               the process ends
//	authority               another authority
//	stop NODE               a graceful stop
type script struct {
	t         *testing.T
	now       time.Duration
	authority *Authority
	records   map[string]Stored
	manifests []string
	nodes     []*actor
	out       []string
}

// actor is one node of a transcript.
type actor struct {
	id      SessionID
	node    *Node
	up      bool
	paused  bool
	waiting []Event
	work    map[string]Fence
}

func (s *script) actor(name string) *actor {
	i := slices.IndexFunc(s.nodes, func(a *actor) bool { return a.id.Node == name })
	if i < 0 {
		s.t.Fatalf("no node %s", name)
	}
	return s.nodes[i]
}

// Line implements play.Player.
func (s *script) Line(words []string) ([]string, error) {
	s.out = nil
	switch words[0] {
	case "boot":
		s.boot(words[1], words[2])
	case "manifest":
		if !slices.Contains(s.manifests, words[1]) {
			s.manifests = append(s.manifests, words[1])
		}
		s.all(Manifest{Name: words[1], Gone: len(words) > 2})
	case "pass":
		return s.out, s.pass(words[1])
	case "authority":
		var holders []SessionID
		for _, m := range s.manifests {
			holders = append(holders, s.records[m].Holder)
		}
		s.authority = NewAuthority(s.now, holders...)
		s.all(s.authority.Sessions(s.now))
	case "dead", "alive":
		id := s.actor(words[1]).id
		for _, a := range s.nodes {
			if a.id != id {
				s.tell(a, Verdict{id, words[0] == "dead"})
			}
		}
	default:
		return s.out, s.act(s.actor(words[1]), words)
	}
	return s.out, nil
}

func (s *script) act(a *actor, words []string) error {
	switch words[0] {
	case "start":
		f, ok := a.node.Start(s.now, words[2])
		s.say("%s starts %s: %v", a.id, words[2], ok)
		if ok {
			a.work[words[2]] = f
		}
	case "done":
		f := a.work[words[2]]
		delete(a.work, words[2])
		s.tell(a, Done{f})
	case "effect":
		if err := a.work[words[2]].Check(s.records[words[2]].Record); err != nil {
			s.say("%v", err)
			s.tell(a, Fenced{a.work[words[2]]})
		} else {
			s.say("accepted")
		}
	case "pause":
		a.paused = true
	case "resume":
		a.paused = false
		for _, e := range a.waiting {
			s.tell(a, e)
		}
		a.waiting = nil
	case "kill":
		a.up = false
	case "stop":
		s.tell(a, Stop{})
	default:
		return fmt.Errorf("unknown verb %s", words[0])
	}
	return nil
}

func (s *script) say(format string, args ...any) {
	s.out = append(s.out, fmt.Sprintf("%v ", s.now)+fmt.Sprintf(format, args...))
}

func (s *script) boot(name, boot string) {
	s.nodes = slices.DeleteFunc(s.nodes, func(a *actor) bool { return a.id.Node == name })
	a := &actor{id: SessionID{name, boot}, node: New(SessionID{name, boot}), up: true, work: map[string]Fence{}}
	s.nodes = append(s.nodes, a)
	s.tell(a, Tick{})
	for _, m := range s.manifests {
		s.tell(a, Observed{m, s.records[m]})
		s.tell(a, Manifest{Name: m})
	}
}

func (s *script) pass(text string) error {
	d, err := time.ParseDuration(text)
	for end := s.now + d; s.now < end; {
		s.now += TickEvery
		if s.authority.Expire(s.now) || s.now%(5*time.Second) == 0 {
			s.all(s.authority.Sessions(s.now))
		}
		for _, a := range s.nodes {
			if !a.paused {
				s.tell(a, Tick{})
			}
		}
	}
	return err
}

func (s *script) all(e Event) {
	for _, a := range s.nodes {
		s.tell(a, e)
	}
}

func (s *script) tell(a *actor, e Event) {
	if !a.up {
		return
	}
	if a.paused {
		a.waiting = append(a.waiting, e)
		return
	}
	for _, action := range slices.Clone(a.node.Step(s.now, e)) {
		s.do(a, action)
	}
}

func (s *script) do(a *actor, action Action) {
	switch x := action.(type) {
	case Renew:
		known := s.authority.live[a.id] != nil
		err := s.authority.Renew(s.now, a.id, x.Session.Leaving)
		s.tell(a, Renewed{Seq: x.Seq, Ended: err != nil})
		if !known || x.Session.Leaving {
			s.all(s.authority.Sessions(s.now))
		}
	case Append:
		s.write(a, x)
	case Cancel:
		s.say("%s cancels %s of epoch %d: %s", a.id, x.Fence.Manifest, x.Fence.Epoch, x.Why)
	case End:
		s.say("%s ends", a.id)
		s.authority.End(s.now, a.id)
		s.all(s.authority.Sessions(s.now))
	}
}

func (s *script) write(a *actor, x Append) {
	m := x.Write.Manifest
	if s.records[m].Revision != x.Write.Expected {
		s.say("%s is refused %s", a.id, m)
		s.tell(a, Answered{Write: x.Write, Outcome: Refused})
		return
	}
	s.records[m] = Stored{x.Write.Record, x.Write.Expected + 1}
	s.say("%s writes %s: %s, epoch %d, %s", a.id, m, x.Write.Record.Holder, x.Write.Record.Epoch, x.Why)
	s.all(Observed{m, s.records[m]})
}

// TestTranscripts plays each transcript. Commit a change of an answer only when it is meant.
func TestTranscripts(t *testing.T) {
	golden.Transcripts(t, "testdata/*.play", func(t *testing.T, text []byte) []byte {
		out, err := play.Run(text, &script{t: t, authority: NewAuthority(-time.Hour), records: map[string]Stored{}})
		if err != nil {
			t.Fatal(err)
		}
		return out
	})
}
