package hotloop

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/test/golden"
)

// script plays a transcript. A line is
//
//	COUNT EVERY VERB [ARGUMENTS]
//
// and happens COUNT times, EVERY apart. Arguments with | take turns. The verbs:
//
//	wrote WRITER OBJECT CONTENT   a write; CONTENT same leaves the version as it was
//	create WRITER                 WRITER is about to create
//	failed WRITER OTHER           what WRITER made failed at once, ended by OTHER; deleted the same by deletion
//	refused WRITER                the API refused what WRITER creates
//	woken WRITER                  a foreign wake
//	release                       asks which pauses are over
//	wait                          time passes
//
// A writer with a slash is ours: CONTROLLER/MANIFEST. Trips and releases follow their line, marked by >.
type script struct {
	detector *Detector
	start    time.Time
	now      time.Time
	out      bytes.Buffer
}

func writerOf(s string) Writer {
	name, manifest, _ := strings.Cut(s, "/")
	return Writer{Name: name, Manifest: manifest}
}

// turn picks the argument of the i-th time.
func turn(arg string, i int) string {
	choices := strings.Split(arg, "|")
	return choices[i%len(choices)]
}

func (s *script) line(t *testing.T, line string) {
	words := strings.Fields(line)
	count, err := strconv.Atoi(words[0])
	if err != nil || len(words) < 3 {
		t.Fatalf("cannot read %q", line)
	}
	every, err := time.ParseDuration(words[1])
	if err != nil {
		t.Fatal(err)
	}
	for i := range count {
		var args []string
		for _, arg := range words[3:] {
			args = append(args, turn(arg, i))
		}
		s.do(t, i+1, words[2], args)
		s.now = s.now.Add(every)
	}
}

func (s *script) do(t *testing.T, n int, verb string, args []string) {
	event := Event{}
	if len(args) > 0 {
		event.Writer = writerOf(args[0])
	}
	switch verb {
	case "wait":
		return
	case "release":
		for _, trip := range s.detector.Release(s.now) {
			fmt.Fprintf(&s.out, "> %d at %v released %s\n", n, s.now.Sub(s.start), trip.Writer)
		}
		return
	case "wrote":
		event.Kind, event.Object = Wrote, Object{Resource: "things", Namespace: "ns", Name: args[1]}
		if event.Same = args[2] == "same"; !event.Same {
			event.Content = hashString(fnvOffset, args[2])
		}
	case "create":
		event.Kind = Creating
	case "failed", "deleted":
		event.Kind = map[string]EventKind{"failed": Failed, "deleted": Deleted}[verb]
		event.Other, event.Object = writerOf(args[1]), Object{Resource: "pods", Namespace: "ns", Name: fmt.Sprint("p", n)}
	case "refused":
		event.Kind, event.Object = Refused, Object{Resource: "pods", Namespace: "ns"}
	case "woken":
		event.Kind = Woken
	default:
		t.Fatalf("unknown verb %q", verb)
	}
	s.step(n, event)
}

func (s *script) step(n int, event Event) {
	trip, tripped := s.detector.Step(s.now, event)
	if !tripped {
		return
	}
	fmt.Fprintf(&s.out, "> %d at %v %s: %s and %s at %s, count %d, pauses %v, strike %d\n", n, s.now.Sub(s.start), trip.Reason,
		trip.Writer, trip.Other, trip.Object, trip.Count, trip.Until.Sub(trip.At), trip.Strikes)
}

func play(t *testing.T, text string) string {
	s := &script{detector: New(), start: time.Unix(1e9, 0), now: time.Unix(1e9, 0)}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, ">") {
			continue
		}
		s.out.WriteString(line + "\n")
		if line != "" && line[0] != '#' {
			s.line(t, line)
		}
	}
	return s.out.String()
}

// TestTranscripts plays each transcript. Commit a change of an outcome only when each changed line is meant.
func TestTranscripts(t *testing.T) {
	golden.Transcripts(t, "testdata/*.txt", func(t *testing.T, text []byte) []byte { return []byte(play(t, string(text))) })
}
