package core

import (
	"errors"
	"math"
	"testing"
	"time"
)

func TestBackoffGrowsToItsCap(t *testing.T) {
	b := Backoff{Initial: time.Second, Factor: 2, Cap: time.Minute, Reset: time.Minute}
	want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60}
	for i, w := range want {
		if got := b.Delay(i+1, 0); got != w*time.Second {
			t.Errorf("delay %d is %v, want %v", i+1, got, w*time.Second)
		}
	}
	if got := b.Delay(math.MaxInt, 0); got != time.Minute {
		t.Errorf("the delay after very many failures is %v", got)
	}
}

func TestJitterOnlyShortens(t *testing.T) {
	b := Backoff{Initial: time.Second, Factor: 2, Cap: time.Minute, Jitter: 0.5, Reset: time.Minute}
	for _, chance := range []float64{0, 0.25, 0.999999} {
		got := b.Delay(1, chance)
		if got > time.Second || got < time.Second/2 {
			t.Errorf("chance %v gives %v", chance, got)
		}
	}
}

func TestUnsetFieldsAreErrors(t *testing.T) {
	good := testChild("a")
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	group := good
	group.Kind = Supervisor
	group.Group = GroupSpec{
		Strategy: Pool, Intensity: Intensity{Max: 1, Within: time.Second},
		Sustained: Intensity{Max: 2, Within: time.Minute}, MaxAbandoned: 1,
	}
	if err := group.Validate(); err != nil {
		t.Fatal(err)
	}
	for field, breakIt := range map[string]func(c *ChildSpec){
		"ID":                   func(c *ChildSpec) { c.ID = "" },
		"Kind":                 func(c *ChildSpec) { c.Kind = 0 },
		"Restart":              func(c *ChildSpec) { c.Restart = 0 },
		"StartTimeout":         func(c *ChildSpec) { c.StartTimeout = 0 },
		"HangAfter":            func(c *ChildSpec) { c.HangAfter = 0 },
		"StopTimeout":          func(c *ChildSpec) { c.StopTimeout = 0 },
		"Mailbox.Limit":        func(c *ChildSpec) { c.Mailbox.Limit = 0 },
		"Mailbox.Overflow":     func(c *ChildSpec) { c.Mailbox.Overflow = 0 },
		"Policy[Panic]":        func(c *ChildSpec) { c.Policy[Panic].Do = 0 },
		"Policy[Hang].Backoff": func(c *ChildSpec) { c.Policy[Hang].Backoff = Backoff{} },
		"Strategy":             func(c *ChildSpec) { c.Group.Strategy = 0 },
		"Intensity.Max":        func(c *ChildSpec) { c.Group.Intensity.Max = 0 },
		"Intensity.Within":     func(c *ChildSpec) { c.Group.Intensity.Within = 0 },
		"Sustained.Max":        func(c *ChildSpec) { c.Group.Sustained.Max = 0 },
		"Sustained.Within":     func(c *ChildSpec) { c.Group.Sustained.Within = 0 },
		"MaxAbandoned":         func(c *ChildSpec) { c.Group.MaxAbandoned = 0 },
		"Policy[BindFailure]":  func(c *ChildSpec) { c.Policy[BindFailure] = Reaction{} },
		"Policy[ErrorReturn]":  func(c *ChildSpec) { c.Policy[ErrorReturn].Do = 0 },
	} {
		c := group
		breakIt(&c)
		var finding *SpecError
		err := c.Validate()
		if !errors.As(err, &finding) || finding.Field != field || !finding.Unset || !errors.Is(err, ErrSpec) {
			t.Errorf("without %s the error is %v", field, err)
		}
	}
}

func TestImpossibleFieldsAreErrors(t *testing.T) {
	for name, breakIt := range map[string]func(c *ChildSpec){
		"negative window":  func(c *ChildSpec) { c.HangAfter = -1 },
		"huge mailbox":     func(c *ChildSpec) { c.Mailbox.Limit = MaxMailbox + 1 },
		"unknown kind":     func(c *ChildSpec) { c.Kind = 9 },
		"cap below start":  func(c *ChildSpec) { c.Policy[Panic].Backoff.Cap = time.Millisecond },
		"shrinking factor": func(c *ChildSpec) { c.Policy[Panic].Backoff.Factor = 0.5 },
		"slash at the end": func(c *ChildSpec) { c.ID = "a/" },
	} {
		c := testChild("a")
		breakIt(&c)
		var finding *SpecError
		if err := c.Validate(); !errors.As(err, &finding) || finding.Unset {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

// life runs a pool member through a fault and its exit and returns the wait.
func life(s *Solo, spec *ChildSpec, kind FaultKind, now time.Time) (time.Duration, bool) {
	s.Begin(now)
	s.Ready(now)
	g := GroupSpec{Intensity: Intensity{Max: 2, Within: time.Minute}, Sustained: Intensity{Max: 4, Within: time.Hour}}
	s.Faulted(spec, &g, kind, now)
	return s.AfterExit(spec, now, 0)
}

// failAfter lets a running member fail after a while and returns the wait.
func failAfter(s *Solo, spec *ChildSpec, now time.Time, served time.Duration) time.Duration {
	g := GroupSpec{Intensity: Intensity{Max: 2, Within: time.Minute}, Sustained: Intensity{Max: 4, Within: time.Hour}}
	s.Faulted(spec, &g, Panic, now.Add(served))
	got, _ := s.AfterExit(spec, now.Add(served), 0)
	return got
}

func TestSoloIsParkedBeyondItsBudget(t *testing.T) {
	spec, s, now := testChild("m"), &Solo{}, time.Unix(1e9, 0)
	for i, want := range []time.Duration{1, 2, 8, 8} {
		got, up := life(s, &spec, Panic, now)
		if got != want*time.Second || !up {
			t.Errorf("wait %d is %v (up %v), want %v", i, got, up, want*time.Second)
		}
		if parked := s.State == Parked; parked != (i >= 2) {
			t.Errorf("after fault %d the member is %v", i, s.State)
		}
		now = now.Add(time.Second)
	}
	if got, _ := life(s, &spec, Panic, now.Add(2*time.Minute)); got != 8*time.Second || s.State != Parked {
		t.Errorf("a parked member that failed at its next try is %v for %v", s.State, got)
	}
	s.Begin(now)
	s.Ready(now)
	if got := failAfter(s, &spec, now, 3*time.Minute); got != time.Second || s.State != BackingOff {
		t.Errorf("after long service the member is %v for %v", s.State, got)
	}
	s.Forgive()
	if got, _ := life(s, &spec, Panic, now); got != time.Second {
		t.Errorf("after a restart by hand the wait is %v", got)
	}
}

func TestSoloBindFailuresCostNothing(t *testing.T) {
	spec, s, now := testChild("m"), &Solo{}, time.Unix(1e9, 0)
	for range 10 {
		life(s, &spec, BindFailure, now)
		if s.State != BackingOff {
			t.Fatalf("the member is %v", s.State)
		}
	}
	if got, _ := life(s, &spec, Panic, now); got != time.Second {
		t.Errorf("the first panic waits %v: it is counted with the bind failures", got)
	}
}

func TestSoloPolicies(t *testing.T) {
	now := time.Unix(1e9, 0)
	for do, want := range map[ReactionKind]State{DoStop: Dead, DoPark: Parked, DoEscalate: Dead, DoRestart: BackingOff} {
		spec, s := testChild("m"), &Solo{}
		spec.Policy[Panic].Do = do
		life(s, &spec, Panic, now)
		if s.State != want {
			t.Errorf("policy %d leaves the member %v, want %v", do, s.State, want)
		}
	}
	spec, s := testChild("m"), &Solo{}
	spec.Restart = Temporary
	if _, up := life(s, &spec, Panic, now); up || s.State != Dead {
		t.Errorf("a temporary member is %v", s.State)
	}
	s.Begin(now)
	if _, up := s.AfterExit(&spec, now, 0); !up || s.State != Idle {
		t.Errorf("a member that was stopped is %v", s.State)
	}
}

// TestMovesTellOfRepairs holds that a child was broken from its first fault until it is ready
// again, whatever happened in between, and that a sibling drawn in was not.
func TestMovesTellOfRepairs(t *testing.T) {
	spec := GroupSpec{
		Strategy: OneForAll, Intensity: Intensity{Max: 5, Within: time.Minute},
		Sustained: Intensity{Max: 6, Within: time.Hour}, MaxAbandoned: 1,
	}
	g := NewGroup(spec, []ChildSpec{testChild("a"), testChild("b")}, func() float64 { return 0 })
	repairs := map[int]time.Duration{}
	step := func(second int, e Event) {
		e.Gen = g.Children()[e.Child].Gen
		g.Step(time.Unix(int64(second), 0), e)
		for _, m := range g.Moves() {
			if m.Repair > 0 {
				repairs[m.Child] += m.Repair
			}
		}
	}
	for _, e := range []struct {
		second int
		event  Event
	}{
		{0, Event{Kind: GroupStart}},
		{0, Event{Kind: ChildReady, Child: 0}},
		{0, Event{Kind: ChildReady, Child: 1}},
		{10, Event{Kind: ChildFault, Child: 0, Fault: Panic}},
		{11, Event{Kind: ChildExited, Child: 1}},
		{12, Event{Kind: ChildExited, Child: 0}},
		{13, Event{Kind: BackoffElapsed, Child: 0}},
		{14, Event{Kind: ChildFault, Child: 0, Fault: ErrorReturn}},
		{15, Event{Kind: ChildExited, Child: 0}},
		{16, Event{Kind: BackoffElapsed, Child: 0}},
		{17, Event{Kind: ChildReady, Child: 0}},
		{18, Event{Kind: ChildReady, Child: 1}},
		{20, Event{Kind: ChildRestart, Child: 0}},
		{21, Event{Kind: ChildExited, Child: 1}},
		{22, Event{Kind: ChildExited, Child: 0}},
		{23, Event{Kind: ChildReady, Child: 0}},
		{24, Event{Kind: ChildReady, Child: 1}},
	} {
		step(e.second, e.event)
	}
	if repairs[0] != 7*time.Second || repairs[1] != 0 {
		t.Errorf("repairs %v, want seven seconds for the one that failed", repairs)
	}
}
