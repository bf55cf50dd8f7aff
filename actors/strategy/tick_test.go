package strategy

import (
	"errors"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestF102_CutOverAndTheEndOfTheOldAreOneTick(t *testing.T) {
	b := steady(t, Spec{Config: size(2, "S")})
	b.to(size(2, "L"), Wait{})
	b.tick()
	b.hydrate("db")
	b.tick()
	b.realized(size(2, "L"))
	b.replicas("r3:L* r4:L*")
	b.quiet()
}

func TestABarrierOnlyAfterAnApply(t *testing.T) {
	b := begin(t, Spec{Config: size(2, "S")})
	b.add("view", Spec{Config: size(0, "S"), Schedule: Schedule{OnRefresh: true}})
	b.tick()
	if n := b.calls["states"]; n != 1 {
		t.Errorf("without a write the sets were read %d times", n)
	}
	if n := b.calls["now"]; n != 2 {
		t.Errorf("the clock was read %d times", n)
	}
	b.to(size(0, "M"), Wait{})
	b.tick()
	if n := b.calls["states"] - 1; n != 2 {
		t.Errorf("with a write the sets were read %d times", n)
	}
	if n := b.probes["view"]; n != 3 {
		t.Errorf("the refresh window was asked for %d times", n)
	}
}

// purity lists what a pure package may import.
var purity = []string{"cmp", "errors", "fmt", "math", "slices", "strconv", "strings", "time"}

func TestF103_StrategiesArePure(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal("no sources", err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range syntax.Imports {
			if path, _ := strconv.Unquote(spec.Path.Value); !slices.Contains(purity, path) {
				t.Errorf("%s imports %s", file, path)
			}
		}
	}
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 3))
		state, signals, settings := anyState(rng), anySignals(rng), Settings{BurstEnabled: rng.IntN(4) > 0}
		signals.Hydrated = map[ReplicaID]bool{}
		for _, r := range state.Replicas {
			signals.Hydrated[r.ID] = rng.IntN(2) == 0
		}
		for _, s := range New().Strategies {
			var seen []any
			for range 2 {
				seen = append(seen, []any{
					s.Request(state, settings), s.Update(state, signals, settings, start), s.Desired(state, signals, settings, start),
				})
			}
			if !reflect.DeepEqual(seen[0], seen[1]) {
				t.Fatalf("seed %d: %s says %+v and then %+v", seed, s.Cause(), seen[0], seen[1])
			}
		}
		rng = rand.New(rand.NewPCG(seed, 3))
		if again := anyState(rng); !reflect.DeepEqual(again, state) {
			t.Fatalf("seed %d: the state was changed to %+v", seed, state)
		}
	}
}

// anyState is any state that could be stored, sensible or not.
func anyState(rng *rand.Rand) State {
	pick := func() Config { return size(rng.IntN(4), []string{"S", "M", "L"}[rng.IntN(3)]) }
	s := State{ID: "db", Durable: Durable{UID: "uid", Config: pick()}}
	s.Schedule.OnRefresh = rng.IntN(4) == 0
	if rng.IntN(2) == 0 {
		s.Policy = Some(BurstPolicy{Size: pick().Shape.Size})
	}
	if rng.IntN(2) == 0 {
		s.Burst = Some(Burst{Size: pick().Shape.Size, Shed: rng.IntN(3) == 0})
		if rng.IntN(2) == 0 {
			s.Burst.value.HydratedAt = Some(start.After(time.Duration(rng.IntN(3)-1) * time.Second))
		}
	}
	if rng.IntN(2) == 0 {
		deadline := start.After(time.Duration(rng.IntN(3)-1) * time.Second)
		status := InProgress
		if rng.IntN(3) == 0 {
			status = Status(1 + rng.IntN(int(Cancelled)))
		}
		s.Reconfiguration = Some(Reconfiguration{
			Target: pick(), Started: start, Deadline: deadline, OnTimeout: OnTimeout(rng.IntN(2)), Status: status,
		})
	}
	for i := range rng.IntN(6) {
		s.Replicas = append(s.Replicas, Replica{ID: ReplicaID("id" + strconv.Itoa(i)), Name: "r" + strconv.Itoa(i+1), Shape: pick().Shape})
	}
	return s
}

func anySignals(rng *rand.Rand) Signals {
	signals := Signals{HasHydratableObjects: rng.IntN(3) > 0}
	if rng.IntN(2) == 0 {
		frontier := Some(start.After(time.Duration(rng.IntN(3)-1) * time.Second))
		signals.Refresh = &RefreshInputs{ReadTimestamp: start, Objects: []RefreshObject{{Name: "sums", Frontier: frontier}}}
	}
	return signals
}

func TestF104_TheKernelRunsWhollyAgainstAFake(t *testing.T) {
	b := begin(t, Spec{Config: size(3, "S")})
	report := b.tick()
	if report.Sets != 1 || report.Applied != 1 || len(report.Errors)+len(report.Conflicts)+len(report.Shed) > 0 {
		t.Errorf("report %+v", report)
	}
	b.replicas("r1:S r2:S r3:S")
	want := map[string]int{"now": 2, "sets": 1, "states": 1, "apply": 1}
	if !reflect.DeepEqual(b.calls, want) {
		t.Errorf("calls %v, want %v", b.calls, want)
	}
}

func TestF105_ASteadySetIsNotProbed(t *testing.T) {
	for name, spec := range map[string]Spec{
		"plain":            {Config: size(2, "S")},
		"burst off":        {Config: size(2, "S"), Policy: Some(BurstPolicy{Size: "L"})},
		"no replicas":      {Config: size(0, "S"), Policy: Some(BurstPolicy{Size: "L"})},
		"done with change": {Config: size(1, "S")},
	} {
		t.Run(name, func(t *testing.T) {
			b := steady(t, spec)
			b.settings.BurstEnabled = name != "burst off"
			if name == "done with change" {
				b.to(size(1, "M"), Wait{})
				b.tick()
				b.hydrate("db")
				b.tick()
				b.status(Finalized)
			}
			clear(b.probes)
			for range 10 {
				b.tick()
			}
			if n := b.probes["db"]; n != 0 {
				t.Errorf("%d probes", n)
			}
		})
	}
}

func TestASetThatMayBurstIsProbedForWhatItNeeds(t *testing.T) {
	b := steady(t, Spec{Config: size(2, "S"), Policy: Some(BurstPolicy{Size: "L"})})
	b.now++
	b.tick() // Ends the burst of the beginning.
	b.replicas("r1:S* r2:S*")
	clear(b.calls)
	b.tick()
	if b.calls["hydrated"] != 1 || b.calls["objects"] != 1 || b.calls["refresh"] != 0 {
		t.Errorf("calls %v", b.calls)
	}
}

func TestF106_AConcurrentSpecChangeRejectsTheBatch(t *testing.T) {
	b := steady(t, Spec{Config: size(2, "S")})
	b.to(size(2, "L"), Wait{})
	b.tick()
	b.hydrate("db")
	b.between = func(call string) {
		if call == "apply" {
			b.between = nil
			b.to(size(3, "M"), Wait{})
		}
	}
	if report := b.tick(); report.Rejected != 1 || report.Applied != 0 {
		t.Fatalf("report %+v", report)
	}
	b.realized(size(2, "S"))
	b.tick()
	b.replicas("r1:S* r2:S* r5:M r6:M r7:M")
	b.hydrate("db")
	b.tick()
	b.realized(size(3, "M"))
	b.replicas("r5:M* r6:M* r7:M*")
	b.quiet()
}

// TestEveryDecisionIsGuarded changes each durable field between read and apply, for each sort of decision.
func TestEveryDecisionIsGuarded(t *testing.T) {
	edits := map[string]func(d *Durable){
		"UID":         func(d *Durable) { d.UID = "another" },
		"Generation":  func(d *Durable) { d.Generation++ },
		"Size":        func(d *Durable) { d.Config.Shape.Size = "M" },
		"Factor":      func(d *Durable) { d.Config.ReplicationFactor = 7 },
		"Zones":       func(d *Durable) { d.Config.Shape.AvailabilityZones = MakeZones("a") },
		"Logging":     func(d *Durable) { d.Config.Shape.Logging.Debug = true },
		"Compression": func(d *Durable) { d.Config.Shape.Compression = true },
		"Template":    func(d *Durable) { d.Config.Shape.Template = "t2" },
		"Schedule":    func(d *Durable) { d.Schedule.HydrationEstimate = time.Hour },
		"Policy":      func(d *Durable) { d.Policy = Some(BurstPolicy{Size: "XL"}) },
		"Record":      func(d *Durable) { d.Reconfiguration = Some(Reconfiguration{Status: Cancelled}) },
		"Burst":       func(d *Durable) { d.Burst = Some(Burst{Size: "XL"}) },
	}
	situations := map[string]func(b *table){
		"create": func(b *table) { b.db.replicas = b.db.replicas[:1] },
		"drop": func(b *table) {
			b.db.replicas = append(b.db.replicas, Replica{ID: "more", Name: "more", Shape: Shape{Size: "S"}})
		},
		"update": func(b *table) { b.to(size(0, "M"), Wait{}) },
	}
	for name, edit := range edits {
		for what, situation := range situations {
			t.Run(name+" "+what, func(t *testing.T) {
				b := steady(t, Spec{Config: size(2, "S")})
				situation(b)
				b.between = func(call string) {
					if call == "apply" {
						b.between = nil
						edit(&b.db.Durable)
					}
				}
				before := b.show("db")
				if report := b.tick(); report.Rejected != 1 || report.Applied != 0 {
					t.Errorf("report %+v", report)
				}
				b.replicas(before)
			})
		}
	}
}

func TestF107_ARejectedSetDoesNotHoldBackOthers(t *testing.T) {
	b := begin(t, Spec{Config: size(0, "S"), Schedule: Schedule{OnRefresh: true}})
	b.db.Config.ReplicationFactor = 2 // It is to be written, which is rejected.
	b.add("before", Spec{Config: size(1, "S")})
	b.add("later", Spec{Config: size(2, "S")})
	busy := false
	b.between = func(call string) {
		if call == "apply" && !busy {
			busy = true
			b.db.Generation++
		}
	}
	report := b.tick()
	if report.Rejected != 1 || report.Applied != 2 {
		t.Errorf("report %+v", report)
	}
	for set, want := range map[SetID]string{"before": "r1:S", "db": "none", "later": "r1:S r2:S"} {
		if got := b.show(set); got != want {
			t.Errorf("%s has %s, want %s", set, got, want)
		}
	}
	b.tick()
	b.quiet()
}

func TestF107_ASetThatCannotBeReadDoesNotHoldBackOthers(t *testing.T) {
	for _, call := range []string{"hydrated", "objects", "apply", "answer"} {
		t.Run(call, func(t *testing.T) {
			b := begin(t, Spec{Config: size(1, "S"), Policy: Some(BurstPolicy{Size: "L"})})
			b.db.replicas = []Replica{{ID: "x", Name: "r1", Shape: Shape{Size: "S"}}}
			b.add("later", Spec{Config: size(2, "S")})
			b.fails[call+" db"] = errBroken
			report := b.tick()
			if len(report.Errors) != 1 || report.Errors[0].Set != "db" || !errors.Is(report.Errors[0], errBroken) {
				t.Errorf("errors %v", report.Errors)
			}
			if got := b.show("later"); got != "r1:S r2:S" {
				t.Errorf("later has %s", got)
			}
			clear(b.fails)
			b.tick()
			b.replicas("r1:S r2:L")
			b.quiet()
		})
	}
}

func TestAnUnreadableWindowLeavesTheSetAsItIs(t *testing.T) {
	b := begin(t, Spec{Config: size(0, "S"), Schedule: Schedule{OnRefresh: true}})
	b.db.replicas = []Replica{{ID: "x", Name: "r1", Shape: Shape{Size: "S"}}}
	b.fails["refresh db"] = errBroken
	if report := b.tick(); len(report.Errors) != 1 {
		t.Errorf("report %+v", report)
	}
	b.replicas("r1:S")
}

func TestATickThatCannotReadSaysSo(t *testing.T) {
	for _, call := range []string{"sets", "states"} {
		b := begin(t, Spec{Config: size(1, "S")})
		b.fails[call] = errBroken
		if _, err := b.kernel.Tick(b.catalog, b.settings); !errors.Is(err, errBroken) {
			t.Errorf("%s: %v", call, err)
		}
		if len(b.applied()) > 0 {
			t.Errorf("%s: something was applied", call)
		}
	}
}

func TestNoSetsNothingToDo(t *testing.T) {
	c := newCatalog()
	report, err := New().Tick(c, Settings{BurstEnabled: true})
	if err != nil || report.Sets != 0 || len(c.applied()) > 0 || c.calls["states"] > 0 {
		t.Errorf("report %+v, %v, calls %v", report, err, c.calls)
	}
}

func TestASteadySetIsLeftAlone(t *testing.T) {
	steady(t, Spec{Config: size(2, "S")}).quiet()
}

func TestASetThatIsGoneIsLeftOut(t *testing.T) {
	b := begin(t, Spec{Config: size(2, "S")})
	b.between = func(call string) {
		if call == "states" {
			delete(b.items, "db")
		}
	}
	if report := b.tick(); report.Sets != 0 || len(b.applied()) > 0 {
		t.Errorf("report %+v", report)
	}
}

func TestF110_TheUnionIsTheMaximum(t *testing.T) {
	b := begin(t, Spec{Config: size(2, "S")})
	b.kernel.Strategies = append(b.kernel.Strategies, wisher{"One", size(1, "S"), StateWrite{}}, wisher{"Two", size(1, "M"), StateWrite{}})
	b.tick()
	b.replicas("r1:S r2:S r3:M")
	b.quiet()
}

// wisher wants and writes always the same.
type wisher struct {
	name  Cause
	wants Config
	write StateWrite
}

func (w wisher) Cause() Cause                                     { return w.name }
func (w wisher) Request(State, Settings) Request                  { return Request{} }
func (w wisher) Update(State, Signals, Settings, Time) StateWrite { return w.write }
func (w wisher) Desired(State, Signals, Settings, Time) []Slots {
	// Slots of one strategy add up.
	var slots []Slots
	for range w.wants.ReplicationFactor {
		slots = append(slots, Slots{Shape: w.wants.Shape, Count: 1, Reason: Reason{Strategy: w.name}})
	}
	return slots
}

func TestF111_CreatesNameStrategiesAndDropsAreRetired(t *testing.T) {
	b := begin(t, Spec{Config: size(1, "S"), Policy: Some(BurstPolicy{Size: "L"})})
	b.to(size(2, "M"), Wait{})
	b.kernel.Strategies = append(b.kernel.Strategies, wisher{"Spare", size(2, "S"), StateWrite{}})
	b.since()
	b.tick()
	b.told("db BurstStarted", "db ReplicaCreated r1 (Baseline; Spare)", "db ReplicaCreated r2 (Baseline; Spare)",
		"db ReplicaCreated r3 (GracefulReconfiguration)", "db ReplicaCreated r4 (GracefulReconfiguration)", "db ReplicaCreated r5 (HydrationBurst)")
	for _, d := range b.applied() {
		for _, c := range d.Creates {
			if c.Shape.Size == "S" && c.Reasons[0].Strategy != CauseBaseline {
				t.Errorf("%s is for %v", c.Name, c.Reasons)
			}
		}
	}
	b.kernel = New()
	b.to(size(1, "S"), Wait{})
	b.since()
	b.hydrate("db", "r2", "r5")
	b.tick()
	b.told("db ReplicaDropped r1 (retired)", "db ReplicaDropped r3 (retired)", "db ReplicaDropped r4 (retired)")
}

func TestF112_TheBaselineRestoresCountAndShape(t *testing.T) {
	for name, c := range map[string]struct {
		disturb func(b *table)
		want    string
	}{
		"too few":        {func(b *table) { b.db.remove(b.db.named("r2").ID) }, "r1:S* r3:S* r4:S"},
		"none":           {func(b *table) { b.db.replicas = nil }, "r1:S r2:S r3:S"},
		"too many":       {func(b *table) { b.plant("r9", Shape{Size: "S"}) }, "r1:S* r2:S* r3:S*"},
		"wrong shape":    {func(b *table) { b.db.named("r2").Shape.Size = "M" }, "r1:S* r3:S* r4:S"},
		"wrong zones":    {func(b *table) { b.db.named("r2").Shape.AvailabilityZones = MakeZones("a") }, "r1:S* r3:S* r4:S"},
		"wrong logging":  {func(b *table) { b.db.named("r2").Shape.Logging.Debug = true }, "r1:S* r3:S* r4:S"},
		"wrong template": {func(b *table) { b.db.named("r2").Shape.Template = "t0" }, "r1:S* r3:S* r4:S"},
		"compressed":     {func(b *table) { b.db.named("r2").Shape.Compression = true }, "r1:S* r3:S* r4:S"},
		"dry one goes": {func(b *table) {
			b.plant("r9", Shape{Size: "S"})
			b.hydrate("db")
			delete(b.db.hydrated, b.db.named("r1").ID)
		}, "r2:S* r3:S* r9:S*"},
	} {
		t.Run(name, func(t *testing.T) {
			b := steady(t, Spec{Config: size(3, "S")})
			c.disturb(b)
			b.tick()
			b.replicas(c.want)
			b.quiet()
		})
	}
}

// plant makes a replica that the kernel did not make.
func (b *table) plant(name string, shape Shape) {
	b.next++
	b.db.replicas = append(b.db.replicas, Replica{ID: ReplicaID("planted" + strconv.Itoa(b.next)), Name: name, Shape: shape})
}

func TestF127_NamesDoNotCollide(t *testing.T) {
	for name, c := range map[string]struct {
		taken []string
		want  []string
	}{
		"none":         {nil, []string{"r1", "r2"}},
		"past highest": {[]string{"r7", "r2"}, []string{"r8", "r9"}},
		"others":       {[]string{"primary", "r", "rx", "R3", "r03", "r-4", "r+5", "r0"}, []string{"r1", "r2"}},
		"no number":    {[]string{"r99999999999999999999999", "r1000000001"}, []string{"r1", "r2"}},
		"gap":          {[]string{"r1", "r3"}, []string{"r4", "r5"}},
		"limit":        {[]string{"r1000000000", "r1000000001"}, []string{"r1000000002", "r1000000003"}},
	} {
		var replicas []Replica
		for _, n := range c.taken {
			replicas = append(replicas, Replica{Name: n})
		}
		names := newNamer(State{Replicas: replicas})
		if got := []string{names.name(), names.name()}; !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestF127_NamesOnTheirWayOutAreNotTaken(t *testing.T) {
	names := newNamer(State{Replicas: []Replica{{Name: "r2"}}, Taken: []string{"r3", "db", "r1"}})
	if got := []string{names.name(), names.name()}; !slices.Equal(got, []string{"r4", "r5"}) {
		t.Errorf("names %v", got)
	}
}

func TestF127_DoingItAgainChangesNothing(t *testing.T) {
	b := steady(t, Spec{Config: size(2, "S")})
	b.db.named("r1").Shape.Size = "M"
	b.tick()
	b.replicas("r2:S* r3:S")
	log := b.applied()
	for range 3 {
		for _, d := range log {
			if outcome, err := b.Apply(d.Batch); outcome != Applied || err != nil {
				t.Fatalf("%v, %v", outcome, err)
			}
		}
		b.replicas("r2:S* r3:S")
	}
	b.quiet()
}

func TestF128_AnObserverOnlyLooks(t *testing.T) {
	b := begin(t, Spec{Config: size(1, "S")})
	readOnly := true
	observer := Observer{b.catalog, func() bool { return readOnly }}
	for range 3 {
		report, err := b.kernel.Tick(observer, b.settings)
		if err != nil || report.Sets != 0 {
			t.Fatalf("report %+v, %v", report, err)
		}
	}
	if outcome, err := observer.Apply(Batch{Set: "db", Expected: Witness(b.db.Durable), Creates: []Create{{Name: "r1"}}}); outcome != Rejected || err != nil {
		t.Fatalf("an observer's batch: %v, %v", outcome, err)
	}
	b.replicas("none")
	readOnly = false
	if _, err := b.kernel.Tick(observer, b.settings); err != nil {
		t.Fatal(err)
	}
	b.replicas("r1:S")
}

// BenchmarkSteady is a tick over 10,000 sets that need nothing.
func BenchmarkSteady(b *testing.B) {
	c := newCatalog()
	for i := range 10_000 {
		c.add(SetID("set"+strconv.Itoa(i)), Spec{Config: size(2, "S")})
	}
	kernel := New()
	if _, err := kernel.Tick(c, Settings{BurstEnabled: true}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := kernel.Tick(c, Settings{BurstEnabled: true}); err != nil {
			b.Fatal(err)
		}
	}
}
