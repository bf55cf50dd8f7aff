package strategy

import (
	"testing"
	"time"
)

// bursting is a set of two that are not hydrated, with a burst.
func bursting(t *testing.T, linger Optional[time.Duration]) *table {
	t.Helper()
	b := begin(t, Spec{Config: size(2, "S"), Policy: Some(BurstPolicy{Size: "L", Linger: linger})})
	b.tick()
	b.replicas("r1:S r2:S r3:L")
	b.told("db BurstStarted", "db ReplicaCreated r1 (Baseline)", "db ReplicaCreated r2 (Baseline)", "db ReplicaCreated r3 (HydrationBurst)")
	return b
}

func TestF124_ABurstBeginsLingersEndsAndBeginsAgain(t *testing.T) {
	b := bursting(t, Some(10*time.Second))
	b.hydrate("db", "r3") // The burst's own replica is not a steady one.
	b.quiet()
	b.hydrate("db", "r1")
	b.tick()
	if burst, _ := b.db.Burst.Get(); burst.HydratedAt != Some(start) {
		t.Errorf("burst %+v", burst)
	}
	b.told() // A stamp is bookkeeping.
	b.now = start.After(10 * time.Second)
	b.quiet()
	b.now++
	b.tick()
	b.told("db BurstFinished (LingerElapsed)", "db ReplicaDropped r3 (retired)")
	b.replicas("r1:S* r2:S")
	b.quiet()
	clear(b.db.hydrated)
	b.tick()
	b.replicas("r1:S r2:S r3:L")
}

func TestF124_TheLingerBeginsAnewWhenTheNeedComesBack(t *testing.T) {
	b := bursting(t, Some(10*time.Second))
	b.hydrate("db", "r1")
	b.tick()
	clear(b.db.hydrated)
	b.now = start.After(time.Hour)
	b.tick()
	b.replicas("r1:S r2:S r3:L")
	b.hydrate("db", "r2")
	b.tick()
	b.now = b.now.After(10 * time.Second)
	b.quiet()
	b.now++
	b.tick()
	b.replicas("r1:S r2:S*")
}

func TestF124_TheDefaultLinger(t *testing.T) {
	for _, linger := range []time.Duration{0, time.Minute} {
		b := bursting(t, Optional[time.Duration]{})
		b.settings.BurstLinger = linger
		b.hydrate("db")
		b.tick()
		b.now = start.After(linger)
		b.quiet()
		b.now++
		b.tick()
		b.replicas("r1:S* r2:S*")
	}
}

func TestF124_ALingerBeyondTheEndOfTimeIsForEver(t *testing.T) {
	b := bursting(t, Some(time.Duration(1<<63-1)))
	b.now = maxTime - 5
	b.hydrate("db")
	b.tick()
	b.now = maxTime
	b.quiet()
	b.replicas("r1:S* r2:S* r3:L*")
}

func TestNoBurstWithoutNeed(t *testing.T) {
	for name, c := range map[string]struct {
		spec  Spec
		edit  func(b *table)
		probe bool
	}{
		"no policy":       {Spec{Config: size(2, "S")}, func(*table) {}, false},
		"no objects":      {Spec{Config: size(2, "S"), Policy: Some(BurstPolicy{Size: "L"})}, func(b *table) { b.db.objects = false }, true},
		"switched off":    {Spec{Config: size(2, "S"), Policy: Some(BurstPolicy{Size: "L"})}, func(b *table) { b.settings.BurstEnabled = false }, false},
		"no replicas":     {Spec{Config: size(0, "S"), Policy: Some(BurstPolicy{Size: "L"})}, func(*table) {}, false},
		"size of the set": {Spec{Config: size(2, "S")}, func(b *table) { b.db.Policy = Some(BurstPolicy{Size: "S"}) }, false},
		"a schedule": {Spec{Config: size(2, "S"), Schedule: Schedule{OnRefresh: true}}, func(b *table) {
			b.db.Policy = Some(BurstPolicy{Size: "L"})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := begin(t, c.spec)
			c.edit(b)
			b.tick()
			b.quiet()
			if b.db.Burst.Present() {
				t.Error("there is a burst")
			}
			if probed := b.calls["hydrated"]+b.calls["objects"] > 0; probed != c.probe {
				t.Errorf("probed: %v", b.calls)
			}
		})
	}
}

func TestF125_BreakGlass(t *testing.T) {
	b := bursting(t, Optional[time.Duration]{})
	b.add("other", Spec{Config: size(1, "M")})
	b.settings.BurstEnabled = false
	b.tick()
	b.told("db BurstFinished (NoLongerWarranted)", "db ReplicaDropped r3 (retired)", "other ReplicaCreated r1 (Baseline)")
	b.replicas("r1:S r2:S")
	b.quiet()
}

func TestF126_CleanupAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(s *Spec)
		want string
	}{
		"policy removed":       {func(s *Spec) { s.Policy = Optional[BurstPolicy]{} }, "r1:S r2:S"},
		"size changed":         {func(s *Spec) { s.Policy.value.Size = "M" }, "r1:S r2:S"},
		"replication factor 0": {func(s *Spec) { s.Config.ReplicationFactor = 0 }, "none"},
		"schedule": {func(s *Spec) {
			s.Policy, s.Schedule.OnRefresh = Optional[BurstPolicy]{}, true
		}, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, shed := range []bool{false, true} {
				b := bursting(t, Some(time.Hour))
				b.db.Burst.value.Shed = shed
				if _, err := b.change("db", c.edit); err != nil {
					t.Fatal(err)
				}
				b.tick()
				b.replicas(c.want)
				if b.db.Burst.Present() {
					t.Errorf("shed %v: the record is still there", shed)
				}
				finished := 0
				for _, audit := range b.since() {
					if audit == "db BurstFinished (NoLongerWarranted)" {
						finished++
					}
				}
				if want := map[bool]int{false: 1, true: 0}[shed]; finished != want {
					t.Errorf("shed %v: %d audit records of the end", shed, finished)
				}
			}
		})
	}
}

func TestF126_AnotherSizeBeginsAnew(t *testing.T) {
	b := bursting(t, Optional[time.Duration]{})
	if _, err := b.change("db", func(s *Spec) { s.Policy.value.Size = "M" }); err != nil {
		t.Fatal(err)
	}
	b.tick()
	b.tick()
	b.replicas("r1:S r2:S r3:M")
	b.quiet()
}

func TestABurstThatWasGivenUpStaysAwayWhileTheNeedLasts(t *testing.T) {
	b := begin(t, Spec{Config: size(2, "S"), Policy: Some(BurstPolicy{Size: "L"})})
	b.room = 2
	b.tick()
	b.told("db BurstStarted", "db BurstShed")
	b.tick()
	b.replicas("r1:S r2:S")
	b.room = 100
	b.now = b.now.After(time.Hour)
	b.quiet()
	b.hydrate("db")
	b.tick()
	b.since()
	b.quiet()
	clear(b.db.hydrated)
	b.tick()
	b.told("db BurstStarted", "db ReplicaCreated r3 (HydrationBurst)")
}

func TestABurstBesideAReconfiguration(t *testing.T) {
	b := bursting(t, Optional[time.Duration]{})
	b.to(size(2, "M"), Wait{})
	b.tick()
	b.replicas("r1:S r2:S r3:L r4:M r5:M")
	b.quiet()
	// The shape of the burst is that of what is realized, in its own size.
	b.hydrate("db", "r4", "r5")
	b.tick()
	b.replicas("r3:L r4:M* r5:M*")
	b.realized(size(2, "M"))
	b.tick()
	b.now++
	b.tick()
	b.replicas("r4:M* r5:M*")
	b.quiet()
}

func TestABurstOfTheTargetsSizeIsCountedOnce(t *testing.T) {
	b := begin(t, Spec{Config: size(2, "S")})
	b.db.Policy = Some(BurstPolicy{Size: "L"})
	b.tick()
	b.db.Reconfiguration = Some(Reconfiguration{Target: size(2, "L"), Deadline: maxTime, Status: InProgress})
	b.tick()
	b.replicas("r1:S r2:S r3:L r4:L")
	b.hydrate("db", "r3", "r4")
	b.tick()
	b.realized(size(2, "L"))
	b.tick()
	b.replicas("r3:L* r4:L*")
	if b.db.Burst.Present() {
		t.Error("a burst of the set's own size")
	}
	b.quiet()
}

func TestAStampOfTheFutureIsPutRight(t *testing.T) {
	b := bursting(t, Some(time.Minute))
	b.hydrate("db")
	b.tick()
	b.now = start.After(-24 * time.Hour)
	b.tick()
	b.now = b.now.After(time.Minute)
	b.quiet()
	b.now++
	b.tick()
	b.replicas("r1:S* r2:S*")
}
