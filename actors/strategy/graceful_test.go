package strategy

import (
	"errors"
	"testing"
	"time"
)

// changing is a set of two small replicas on its way to two large ones.
func changing(t *testing.T, wait Wait) *table {
	t.Helper()
	b := steady(t, Spec{Config: size(2, "S")})
	b.to(size(2, "L"), wait)
	b.since()
	b.tick()
	return b
}

func TestF113_TheOldServeUntilTheNewAreHydrated(t *testing.T) {
	b := changing(t, Wait{})
	b.replicas("r1:S* r2:S* r3:L r4:L")
	b.hydrate("db", "r4")
	b.tick()
	b.replicas("r1:S* r2:S* r3:L r4:L*")
	b.realized(size(2, "S"))
	b.quiet()
	b.hydrate("db", "r3")
	b.tick()
	b.realized(size(2, "L"))
	b.replicas("r3:L* r4:L*")
	b.quiet()
}

func TestF113_ADryTargetReplicaTooManyDoesNotBlockAndIsTheOneThatGoes(t *testing.T) {
	b := changing(t, Wait{})
	b.plant("r0", Shape{Size: "L"}) // In order it is the last; hydrated it must stay nevertheless.
	b.hydrate("db", "r4", "r0")
	b.tick()
	b.realized(size(2, "L"))
	b.replicas("r4:L* r0:L*")
	b.quiet()
}

func TestF113_NoneAtAllAreHydratedAtOnce(t *testing.T) {
	b := steady(t, Spec{Config: size(2, "S")})
	b.to(size(0, "L"), Wait{})
	b.tick()
	b.realized(size(0, "L"))
	b.replicas("none")
	b.quiet()
}

func TestF114_RollbackAtTheDeadline(t *testing.T) {
	b := changing(t, WaitFor(time.Minute))
	b.hydrate("db", "r3")
	b.now = start.After(time.Minute)
	b.since()
	b.tick()
	b.told("db ReconfigurationTimedOut", "db ReplicaDropped r3 (retired)", "db ReplicaDropped r4 (retired)")
	b.status(TimedOut)
	b.realized(size(2, "S"))
	b.replicas("r1:S* r2:S*")
	b.quiet()
}

func TestF115_CommitAtTheDeadline(t *testing.T) {
	b := changing(t, Wait{Timeout: Some(time.Minute), OnTimeout: Commit})
	b.now = start.After(time.Minute)
	b.since()
	b.tick()
	b.told("db ReconfigurationFinalized forced", "db ReplicaDropped r1 (retired)", "db ReplicaDropped r2 (retired)")
	b.status(Finalized)
	b.realized(size(2, "L"))
	b.replicas("r3:L r4:L")
	b.quiet()
}

func TestF116_TheDeadlineIsExact(t *testing.T) {
	for _, onTimeout := range []OnTimeout{Rollback, Commit} {
		b := changing(t, Wait{Timeout: Some(time.Minute), OnTimeout: onTimeout})
		b.now = start.After(time.Minute) - 1
		b.quiet()
		b.status(InProgress)
		b.now++
		b.tick()
		if r, _ := b.db.Reconfiguration.Get(); r.Status == InProgress {
			t.Errorf("%s: still in progress at the deadline", onTimeout)
		}
	}
}

func TestF116_ZeroAndCommitMakeNoOverlap(t *testing.T) {
	b := steady(t, Spec{Config: size(2, "S")})
	b.to(size(2, "L"), Wait{Timeout: Some(time.Duration(0)), OnTimeout: Commit})
	b.tick()
	b.replicas("r3:L r4:L")
	log := b.applied()
	if len(log) != 2 || len(log[1].Creates) != 2 || len(log[1].Drops) != 2 {
		t.Errorf("applied %+v", log)
	}
	b.quiet()
}

// TestF116_ADeadlineBetweenTheSteps asks for the change after the first step has looked, so that the second sees a deadline that is past.
func TestF116_ADeadlineBetweenTheSteps(t *testing.T) {
	b := steady(t, Spec{Config: size(2, "S")})
	b.add("aaa", Spec{Config: size(1, "S"), Schedule: Schedule{OnRefresh: true}}) // Its write makes the kernel look twice.
	looks := 0
	b.between = func(call string) {
		if looks++; call == "states" && b.calls["states"]%2 == 0 {
			b.between = nil
			b.to(size(2, "L"), Wait{Timeout: Some(time.Duration(0)), OnTimeout: Commit})
		}
	}
	clear(b.calls)
	b.tick()
	b.status(InProgress)
	b.replicas("r1:S* r2:S*")
	b.tick()
	b.replicas("r3:L r4:L")
}

// TestF116_WhatIsThereAtADeadlineBetweenTheStepsIsKept lets the clock pass the deadline within a tick.
func TestF116_WhatIsThereAtADeadlineBetweenTheStepsIsKept(t *testing.T) {
	b := changing(t, Wait{Timeout: Some(time.Minute), OnTimeout: Commit})
	b.db.remove(b.db.named("r4").ID)
	b.now = start.After(time.Minute) - 1
	clear(b.calls)
	b.between = func(call string) {
		if call == "now" && b.calls["now"] == 2 {
			b.now++
		}
	}
	b.tick()
	b.status(InProgress)
	b.replicas("r1:S* r2:S* r3:L")
	b.tick()
	b.realized(size(2, "L"))
	b.replicas("r3:L r4:L")
}

func TestF117_SuccessBeatsTheDeadline(t *testing.T) {
	for _, onTimeout := range []OnTimeout{Rollback, Commit} {
		b := changing(t, Wait{Timeout: Some(time.Minute), OnTimeout: onTimeout})
		b.hydrate("db")
		b.now = start.After(time.Hour)
		b.since()
		b.tick()
		b.told("db ReconfigurationFinalized", "db ReplicaDropped r1 (retired)", "db ReplicaDropped r2 (retired)")
		b.realized(size(2, "L"))
	}
}

func TestF118_ASpecThatChangesAgain(t *testing.T) {
	b := changing(t, Wait{})
	b.now = b.now.After(time.Minute)
	if kind := b.to(size(1, "M"), WaitFor(time.Hour)); kind != Retargeted {
		t.Errorf("folded as %s", kind)
	}
	if r, _ := b.db.Reconfiguration.Get(); r.Target != size(1, "M") || r.Deadline != b.now.After(time.Hour) {
		t.Errorf("record %s", r)
	}
	b.tick()
	b.replicas("r1:S* r2:S* r5:M")
	if kind := b.to(size(2, "S"), Wait{}); kind != CancelledBack {
		t.Errorf("folded as %s", kind)
	}
	b.applied()
	b.tick()
	b.status(Cancelled)
	b.replicas("r1:S* r2:S*")
	for _, d := range b.applied() {
		if len(d.Creates) > 0 {
			t.Errorf("the change back made %v", d.Creates)
		}
	}
	b.quiet()
}

func TestF118_BackBeforeAnythingWasMade(t *testing.T) {
	b := steady(t, Spec{Config: size(2, "S")})
	b.to(size(2, "L"), Wait{})
	b.to(size(2, "S"), Wait{})
	b.quiet()
	b.replicas("r1:S* r2:S*")
}

func TestFolds(t *testing.T) {
	zoned := size(2, "S")
	zoned.Shape.AvailabilityZones = MakeZones("b", "a")
	logged := size(2, "S")
	logged.Shape.Logging.Interval = time.Second
	for name, c := range map[string]struct {
		during bool
		target Config
		wait   Wait
		want   FoldKind
		config Config
	}{
		"nothing":                 {false, size(2, "S"), Wait{}, Unchanged, size(2, "S")},
		"number":                  {false, size(5, "S"), Wait{}, Direct, size(5, "S")},
		"size":                    {false, size(2, "M"), Wait{}, Started, size(2, "S")},
		"zones alone":             {false, zoned, Wait{}, Started, size(2, "S")},
		"logging alone":           {false, logged, Wait{}, Started, size(2, "S")},
		"during: same":            {true, size(2, "L"), Wait{}, Unchanged, size(2, "S")},
		"during: other deadline":  {true, size(2, "L"), WaitFor(time.Hour), Retargeted, size(2, "S")},
		"during: other end":       {true, size(2, "L"), Wait{OnTimeout: Commit}, Retargeted, size(2, "S")},
		"during: other number":    {true, size(3, "L"), Wait{}, Retargeted, size(2, "S")},
		"during: number of old":   {true, size(3, "S"), Wait{}, Retargeted, size(2, "S")},
		"during: back":            {true, size(2, "S"), Wait{}, CancelledBack, size(2, "S")},
		"during: back, with wait": {true, size(2, "S"), WaitFor(0), CancelledBack, size(2, "S")},
	} {
		t.Run(name, func(t *testing.T) {
			b := steady(t, Spec{Config: size(2, "S")})
			if c.during {
				b.to(size(2, "L"), Wait{})
			}
			generation := b.db.Generation
			if kind := b.to(c.target, c.wait); kind != c.want {
				t.Errorf("folded as %s, want %s", kind, c.want)
			}
			b.realized(c.config)
			if b.db.Generation != generation+1 {
				t.Errorf("generation %d after %d", b.db.Generation, generation)
			}
			r, busy := b.db.InFlight()
			if want := c.want == Started || c.want == Retargeted || c.during && c.want == Unchanged; busy != want || busy && r.Target != c.target {
				t.Errorf("record %s", r)
			}
		})
	}
}

func TestAGenerationIsFoldedOnce(t *testing.T) {
	d, err := Begin("uid", Spec{Generation: 3, Config: size(1, "S")})
	if err != nil {
		t.Fatal(err)
	}
	spec := Spec{Generation: 4, Config: size(1, "M")}
	first, err := Fold(d, spec, start)
	if err != nil {
		t.Fatal(err)
	}
	for _, generation := range []int64{4, 3, 0} {
		spec.Generation = generation
		again, err := Fold(first.Durable, spec, start.After(time.Hour))
		if err != nil || again.Durable != first.Durable || again.Kind != Unchanged || again.Audit.Present() {
			t.Errorf("generation %d again gives %+v, %v", generation, again, err)
		}
	}
}

func TestBadSpecsAreRefused(t *testing.T) {
	good := Spec{Generation: 2, Config: size(1, "S")}
	for name, edit := range map[string]func(s *Spec){
		"size":       func(s *Spec) { s.Config.Shape.Size = "" },
		"negative":   func(s *Spec) { s.Config.ReplicationFactor = -1 },
		"too many":   func(s *Spec) { s.Config.ReplicationFactor = MaxReplicationFactor + 1 },
		"logging":    func(s *Spec) { s.Config.Shape.Logging.Interval = -1 },
		"estimate":   func(s *Spec) { s.Schedule.HydrationEstimate = -1 },
		"timeout":    func(s *Spec) { s.Wait.Timeout = Some(-time.Second) },
		"on timeout": func(s *Spec) { s.Wait.OnTimeout = 7 },
		"burst size": func(s *Spec) { s.Policy = Some(BurstPolicy{}) },
		"same size":  func(s *Spec) { s.Policy = Some(BurstPolicy{Size: "S"}) },
		"linger":     func(s *Spec) { s.Policy = Some(BurstPolicy{Size: "L", Linger: Some(-time.Second)}) },
		"burst refresh": func(s *Spec) {
			s.Policy, s.Schedule.OnRefresh = Some(BurstPolicy{Size: "L"}), true
		},
	} {
		spec := good
		edit(&spec)
		if _, err := Begin("uid", spec); !errors.Is(err, ErrSpec) {
			t.Errorf("%s: begins with %v", name, err)
		}
		if folded, err := Fold(Durable{Config: good.Config}, spec, start); !errors.Is(err, ErrSpec) || folded != (Folded{}) {
			t.Errorf("%s: folds to %+v, %v", name, folded, err)
		}
	}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
}

func TestADeadlineAtTheEndOfTime(t *testing.T) {
	r := Spec{Config: size(1, "S"), Wait: WaitFor(1 << 62)}.reconfiguration(maxTime - 5)
	if r.Deadline != maxTime {
		t.Errorf("deadline %d", r.Deadline)
	}
}

// TestF119_AChangeSurvivesRestarts kills the tick that cuts over at each of its calls; the next one finishes.
func TestF119_AChangeSurvivesRestarts(t *testing.T) {
	type killed struct{}
	for at := 1; ; at++ {
		b := changing(t, Wait{})
		b.hydrate("db")
		calls := 0
		b.between = func(string) {
			if calls++; calls == at {
				panic(killed{})
			}
		}
		through := func() (ok bool) {
			defer func() { _, dead := recover().(killed); ok = !dead }()
			b.tick()
			return true
		}()
		b.between = nil
		if all, hydrated := b.db.count(b.db.Config.Shape); all < 2 || hydrated < 2 {
			t.Fatalf("killed at call %d: %s of %s", at, b.show("db"), b.db.Config)
		}
		b.kernel = New()
		b.tick()
		b.realized(size(2, "L"))
		b.replicas("r3:L* r4:L*")
		b.quiet()
		if through {
			if at != 9 {
				t.Errorf("the tick was killed at %d calls", at-1)
			}
			return
		}
	}
}

func TestF120_AChangeReturnsAtOnceAndCanBeWaitedFor(t *testing.T) {
	b := steady(t, Spec{Config: size(2, "S")})
	b.to(size(2, "L"), WaitFor(time.Minute))
	mine := b.db.Generation
	if _, ok := b.db.Settled(mine); ok {
		t.Error("settled before it began")
	}
	if _, ok := b.db.Settled(mine + 1); ok {
		t.Error("a change that was not seen yet is settled")
	}
	// Nobody waits any more; it goes on.
	b.tick()
	b.hydrate("db")
	b.tick()
	if status, ok := b.db.Settled(mine); !ok || status != Finalized {
		t.Errorf("settled as %s, %v", status, ok)
	}
	b.to(size(2, "M"), WaitFor(time.Minute))
	mine = b.db.Generation
	b.tick()
	b.now = b.now.After(time.Minute)
	b.tick()
	if status, ok := b.db.Settled(mine); !ok || status != TimedOut {
		t.Errorf("settled as %s, %v", status, ok)
	}
	b.to(size(3, "L"), Wait{})
	if status, ok := b.db.Settled(b.db.Generation); !ok || status != Finalized {
		t.Errorf("a change of the number alone is settled as %s, %v", status, ok)
	}
	b.to(size(3, "M"), Wait{})
	mine = b.db.Generation
	b.to(size(3, "L"), Wait{})
	if status, ok := b.db.Settled(mine); !ok || status != Cancelled {
		t.Errorf("settled as %s, %v", status, ok)
	}
	if status, ok := b.db.Settled(b.db.Generation); !ok || status != Finalized {
		t.Errorf("the change back is settled as %s, %v", status, ok)
	}
}

func TestF121_WhatIsInFlightCanBeSeen(t *testing.T) {
	b := changing(t, WaitFor(time.Minute))
	v := b.db.View()
	target, ok := v.Target.Get()
	if v.Realized != size(2, "S") || !ok || target != size(2, "L") || v.Deadline != start.After(time.Minute) || v.Status != InProgress {
		t.Errorf("view %+v", v)
	}
	want := "realized 2 x S, reconfiguration to 2 x L InProgress, deadline 2030-01-01T00:01:00Z, then Rollback"
	if v.String() != want {
		t.Errorf("view %s", v)
	}
	b.hydrate("db")
	b.tick()
	if v := b.db.View(); v.Realized != size(2, "L") || v.Status != Finalized {
		t.Errorf("view %+v", v)
	}
}

func TestF122_ExhaustionGivesUpTheChangeAndNotTheBaseline(t *testing.T) {
	b := steady(t, Spec{Config: size(2, "S")})
	b.room = 5
	b.to(size(2, "L"), Wait{})
	b.since()
	report := b.tick()
	if report.Exhausted != 1 || report.Applied != 1 || len(report.Shed) != 1 {
		t.Errorf("report %+v", report)
	}
	b.told("db ReconfigurationResourceExhausted")
	b.status(ResourceExhausted)
	b.realized(size(2, "S"))
	b.replicas("r1:S* r2:S*")
	b.quiet()
}

func TestF122_TheBurstIsGivenUpFirst(t *testing.T) {
	b := begin(t, Spec{Config: size(2, "S"), Policy: Some(BurstPolicy{Size: "L"})})
	b.to(size(1, "M"), Wait{})
	b.room = 4
	b.since()
	b.tick()
	b.told("db BurstStarted", "db BurstShed")
	b.replicas("none")
	b.tick()
	b.replicas("r1:S r2:S r3:M")
	b.status(InProgress)
	b.quiet()
	// Without room for the change either, that goes at the next tick.
	b.db.remove(b.db.named("r3").ID)
	b.room = 3
	b.tick()
	b.status(ResourceExhausted)
	b.quiet()
}

// TestF122_AReplicaThatFindsNoPlace: replicas may be made and then not be placed, which ends as if they could not be made.
func TestF122_AReplicaThatFindsNoPlace(t *testing.T) {
	b := begin(t, Spec{Config: size(2, "S"), Policy: Some(BurstPolicy{Size: "L"})})
	b.to(size(1, "M"), Wait{})
	b.tick()
	b.replicas("r1:S r2:S r3:M r4:L")
	b.db.unplaced = true
	b.since()
	b.tick()
	b.told("db BurstShed")
	b.tick()
	b.told("db ReplicaDropped r4 (retired)", "db ReconfigurationResourceExhausted")
	b.tick()
	b.status(ResourceExhausted)
	b.replicas("r1:S r2:S")
	b.quiet() // What is realized is never given up.
}

func TestF122_TheBaselineIsTriedAgain(t *testing.T) {
	b := begin(t, Spec{Config: size(2, "S")})
	b.room = 1
	for range 3 {
		if report := b.tick(); report.Exhausted != 1 || report.Applied != 0 || len(report.Shed) != 0 {
			t.Fatalf("report %+v", report)
		}
	}
	b.room = 2
	b.tick()
	b.replicas("r1:S r2:S")
}

func TestF122_GivingUpIsGuarded(t *testing.T) {
	b := steady(t, Spec{Config: size(2, "S")})
	b.room = 5
	b.to(size(2, "L"), Wait{})
	applies := 0
	b.between = func(call string) {
		if call != "apply" {
			return
		}
		if applies++; applies == 2 {
			b.between = nil
			b.to(size(1, "M"), Wait{})
		}
	}
	if report := b.tick(); report.Exhausted != 1 || report.Rejected != 1 || len(report.Shed) != 0 {
		t.Errorf("report %+v", report)
	}
	b.status(InProgress)
	b.tick()
	b.replicas("r1:S* r2:S* r3:M")
}
