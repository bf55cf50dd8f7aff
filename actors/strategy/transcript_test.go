package strategy

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/test/golden"
)

// script plays a transcript. The lines:
//
//	set NAME N SIZE OPTIONS      a new set of N replicas
//	change NAME N SIZE OPTIONS   its spec changes
//	hydrate NAME [REPLICA...]    replicas become hydrated, all without names; dry is the opposite, die their end
//	plant NAME REPLICA SIZE      somebody else makes a replica
//	objects NAME yes|no          whether there is anything to hydrate
//	refresh NAME OBJECT FRONTIER EVERY COMPACTION   an object that is refreshed; times count from the start
//	room N                       how much all replicas may weigh; S weighs 1, M 2, L 4
//	settings burst=on|off linger=D
//	observe on|off
//	advance D                    time passes; it may be negative
//	meanwhile LINE               the line happens between the read and the next apply
//	crash CALL [N]               the next tick is killed at its Nth call of this name, the first by default
//	tick [N]
//
// The options of a set: zones=a,b burst=SIZE linger=D schedule=D|none within=D commit logging=D. What ticks apply, audit records and
// what is there then follow each line, marked by >.
type script struct {
	*catalog
	kernel    *Kernel
	settings  Settings
	readOnly  bool
	meanwhile string
	crash     string
	survives  int
	out       bytes.Buffer
}

// killed is the panic of a tick that is killed.
type killed struct{}

// outer is what the kernel sees: what happens meanwhile does so before an observer judges.
type outer struct {
	script *script
	Observer
}

// Apply is that of the script.
func (o outer) Apply(b Batch) (Outcome, error) { return o.script.Apply(b) }

func newScript() *script {
	s := &script{catalog: newCatalog(), kernel: New(), settings: Settings{BurstEnabled: true}}
	s.kernel.Alarm = func(c Conflict) { panic(c) }
	s.between = func(call string) {
		if call != s.crash {
			return
		}
		if s.survives--; s.survives == 0 {
			s.crash = ""
			panic(killed{})
		}
	}
	return s
}

// Apply lets happen what happens meanwhile.
func (s *script) Apply(b Batch) (Outcome, error) {
	if line := s.meanwhile; line != "" {
		s.meanwhile = ""
		s.do(line)
	}
	return Observer{s.catalog, func() bool { return s.readOnly }}.Apply(b)
}

func (s *script) do(line string) {
	words := strings.Fields(line)
	args := words[1:]
	switch words[0] {
	case "set":
		spec := Spec{}
		options(&spec, args[1:])
		s.add(SetID(args[0]), spec)
	case "change":
		kind, err := s.change(SetID(args[0]), func(spec *Spec) { options(spec, args[1:]) })
		fmt.Fprintf(&s.out, "> %s %s\n", args[0], result(kind, err))
	case "hydrate", "dry", "die", "plant":
		s.replica(words[0], SetID(args[0]), args[1:])
	case "objects":
		s.items[SetID(args[0])].objects = args[1] == "yes"
	case "refresh":
		s.object(s.items[SetID(args[0])], args[1], args[2:])
	case "room":
		s.room = number(args[0])
	case "settings":
		for _, arg := range args {
			name, value, _ := strings.Cut(arg, "=")
			if name == "burst" {
				s.settings.BurstEnabled = value == "on"
			} else {
				s.settings.BurstLinger = length(value)
			}
		}
	case "observe":
		s.readOnly = args[0] == "on"
	case "advance":
		s.now = s.now.After(length(args[0]))
	case "meanwhile":
		s.meanwhile = strings.Join(args, " ")
	case "crash":
		s.crash, s.survives = args[0], number(append(args, "1")[1])
	case "tick":
		for range number(append(args, "1")[0]) {
			s.tick()
		}
	default:
		panic("unknown line " + line)
	}
}

func result(kind FoldKind, err error) string {
	if err != nil {
		return err.Error()
	}
	return kind.String()
}

func length(s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		panic(err)
	}
	return d
}

// options reads what a user declares. The wait is declared anew each time.
func options(spec *Spec, words []string) {
	spec.Config.ReplicationFactor, spec.Config.Shape.Size = number(words[0]), words[1]
	spec.Wait = Wait{}
	for _, word := range words[2:] {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "zones":
			spec.Config.Shape.AvailabilityZones = MakeZones(strings.Split(value, ",")...)
		case "logging":
			spec.Config.Shape.Logging.Interval = length(value)
		case "burst":
			spec.Policy = Optional[BurstPolicy]{}
			if value != "none" {
				spec.Policy = Some(BurstPolicy{Size: value})
			}
		case "linger":
			spec.Policy.value.Linger = Some(length(value))
		case "schedule":
			spec.Schedule = Schedule{}
			if value != "none" {
				spec.Schedule = Schedule{OnRefresh: true, HydrationEstimate: length(value)}
			}
		case "within":
			spec.Wait.Timeout = Some(length(value))
		case "commit":
			spec.Wait.OnTimeout = Commit
		default:
			panic("unknown option " + word)
		}
	}
}

func (s *script) replica(verb string, set SetID, names []string) {
	i := s.items[set]
	if verb == "plant" {
		s.next++
		i.replicas = append(i.replicas, Replica{ID: ReplicaID(fmt.Sprint("id", s.next)), Name: names[0], Shape: Shape{Size: names[1]}})
		return
	}
	for _, r := range slices.Clone(i.replicas) {
		if len(names) > 0 && !slices.Contains(names, r.Name) {
			continue
		}
		switch verb {
		case "hydrate":
			i.hydrated[r.ID] = true
		case "dry":
			delete(i.hydrated, r.ID)
		default:
			i.remove(r.ID)
		}
	}
}

// object puts an object that is refreshed in place of the one of the same name. The read timestamp is now.
func (s *script) object(i *item, name string, words []string) {
	in := &RefreshInputs{ReadTimestamp: s.now, CompactionEstimate: length(words[2])}
	if i.refresh != nil {
		in.Objects = slices.DeleteFunc(slices.Clone(i.refresh.Objects), func(o RefreshObject) bool { return o.Name == name })
	}
	in.Objects = append(in.Objects, RefreshObject{
		Name: name, Frontier: Some(start.After(length(words[0]))),
		Schedule: RefreshSchedule{Every: []RefreshEvery{{Interval: length(words[1]), AlignedTo: start}}},
	})
	i.refresh = in
}

func (s *script) tick() {
	for _, i := range s.items {
		if i.refresh != nil {
			i.refresh.ReadTimestamp = s.now
		}
	}
	s.applied()
	func() {
		defer func() {
			if p := recover(); p != nil {
				if _, ok := p.(killed); !ok {
					panic(p)
				}
				s.out.WriteString("> killed\n")
			}
		}()
		report, err := s.kernel.Tick(outer{s, Observer{s.catalog, func() bool { return s.readOnly }}}, s.settings)
		if err != nil || len(report.Errors) > 0 {
			fmt.Fprintf(&s.out, "> %v %v\n", err, report.Errors)
		}
	}()
	for _, d := range s.applied() {
		fmt.Fprintf(&s.out, "> %s %s: %s\n", d.Set, d.Outcome, deeds(d.Batch))
	}
}

// deeds tells what a batch does.
func deeds(b Batch) string {
	var words []string
	if n, ok := b.Update.Size.Get(); ok {
		words = append(words, "size "+n)
	}
	if n, ok := b.Update.ReplicationFactor.Get(); ok {
		words = append(words, fmt.Sprint("replication factor ", n))
	}
	if z, ok := b.Update.AvailabilityZones.Get(); ok {
		words = append(words, "zones "+z.String())
	}
	if change, ok := b.Update.Reconfiguration.Get(); ok {
		words = append(words, "record "+change.Record.value.Status.String())
	}
	if change, ok := b.Update.Burst.Get(); ok {
		words = append(words, burstWord(change.Record))
	}
	for _, c := range b.Creates {
		words = append(words, fmt.Sprintf("create %s %s (%s)", c.Name, c.Shape, c.why()))
	}
	for _, d := range b.Drops {
		words = append(words, fmt.Sprintf("drop %s %s", d.Name, d.Shape))
	}
	return strings.Join(words, ", ")
}

func burstWord(record Optional[Burst]) string {
	burst, ok := record.Get()
	switch {
	case !ok:
		return "no burst"
	case burst.Shed:
		return "burst " + burst.Size + " shed"
	case burst.HydratedAt.Present():
		return "burst " + burst.Size + " no longer needed"
	}
	return "burst " + burst.Size
}

// line plays a line and shows what is there after it, unless it only prepares the next.
func (s *script) line(line string) {
	s.out.WriteString(line + "\n")
	if line == "" || line[0] == '#' {
		return
	}
	s.do(line)
	for _, audit := range s.since() {
		fmt.Fprintf(&s.out, ">   %s\n", audit)
	}
	if !strings.HasPrefix(line, "tick") {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(s.items)) {
		fmt.Fprintf(&s.out, "> %s: %s: %s\n", id, s.items[id].View(), s.show(id))
	}
}

func play(text string) string {
	s := newScript()
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\n"); !strings.HasPrefix(line, ">") {
			s.line(line)
		}
	}
	return s.out.String()
}

// TestTranscripts plays each transcript. Commit a change of an outcome only when each changed line is meant.
func TestTranscripts(t *testing.T) {
	golden.Transcripts(t, "testdata/*.txt", func(_ *testing.T, text []byte) []byte { return []byte(play(string(text))) })
}
