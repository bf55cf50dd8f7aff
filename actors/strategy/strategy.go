package strategy

import (
	"fmt"
	"strings"
	"time"
)

// Cause names a strategy in audit records.
type Cause string

// The strategies there are.
const (
	CauseBaseline                Cause = "Baseline"
	CauseGracefulReconfiguration Cause = "GracefulReconfiguration"
	CauseHydrationBurst          Cause = "HydrationBurst"
	CauseOnRefresh               Cause = "OnRefresh"
)

// Settings are what an operator of the whole can switch. They are read once per tick.
type Settings struct {
	// BurstEnabled is off to remove all bursts at once.
	BurstEnabled bool
	// BurstLinger is the linger of policies that have none.
	BurstLinger time.Duration
}

// Strategy decides a part of what a managed set needs. It is pure: what it is given decides all, and it changes nothing of that. It
// adds wishes and cannot take away those of others. Embed Passive for what a strategy does not do.
type Strategy interface {
	// Cause is the strategy's name.
	Cause() Cause
	// Request tells which signals the strategy needs for this state. Signals cost: ask for none of a set that is steady.
	Request(State, Settings) Request
	// Update tells what is to change of the durable state, nothing in most cases.
	Update(State, Signals, Settings, Time) StateWrite
	// Desired tells which replicas the strategy wants, all of them and not only the missing ones.
	Desired(State, Signals, Settings, Time) []Slots
}

// Expendable is a strategy whose replicas can be given up when resources run out.
type Expendable interface {
	// Shed gives the write that gives them up, empty when there is nothing to give up. After it the strategy must not ask for them
	// again at the next tick.
	Shed(State) StateWrite
}

// Passive is a strategy that asks for nothing, writes nothing and wants nothing.
type Passive struct{}

// Request asks for nothing.
func (Passive) Request(State, Settings) Request { return Request{} }

// Update writes nothing.
func (Passive) Update(State, Signals, Settings, Time) StateWrite { return StateWrite{} }

// Desired wants nothing.
func (Passive) Desired(State, Signals, Settings, Time) []Slots { return nil }

// Request says which live signals are needed.
type Request struct{ Hydration, HydratableObjects, RefreshWindow bool }

func (r Request) union(s Request) Request {
	return Request{r.Hydration || s.Hydration, r.HydratableObjects || s.HydratableObjects, r.RefreshWindow || s.RefreshWindow}
}

// Signals are what is known of a set only now. What was not requested is zero.
type Signals struct {
	// Hydrated holds the replicas that are online and whose objects have all caught up, transient ones aside.
	Hydrated map[ReplicaID]bool
	// HasHydratableObjects tells whether there is anything to hydrate.
	HasHydratableObjects bool
	// Refresh is nil for a set of which nothing is known to be refreshed.
	Refresh *RefreshInputs
}

// hydrated tells how many replicas of the shape are hydrated.
func (s Signals) hydrated(state State, shape Shape) int {
	n := 0
	for _, r := range state.Replicas {
		if r.Shape == shape && s.Hydrated[r.ID] {
			n++
		}
	}
	return n
}

// Slots are a number of replicas of one shape that a strategy wants.
type Slots struct {
	Shape  Shape
	Count  int
	Reason Reason
}

// Reason is why a replica is wanted.
type Reason struct {
	Strategy Cause
	// Window is what opened the refresh window, for OnRefresh.
	Window Window
}

// String is the reason for people.
func (r Reason) String() string {
	if !r.Window.Open() {
		return string(r.Strategy)
	}
	return fmt.Sprintf("%s: %s", r.Strategy, r.Window)
}

// Window is the decision whether a refresh window is open.
type Window struct {
	// Refresh are the objects that are to be refreshed, Compaction those whose last refresh is to be compacted.
	Refresh, Compaction []string
}

// Open tells whether anything needs a replica.
func (w Window) Open() bool { return len(w.Refresh)+len(w.Compaction) > 0 }

// String lists the objects.
func (w Window) String() string {
	var parts []string
	if len(w.Refresh) > 0 {
		parts = append(parts, "refresh of "+strings.Join(w.Refresh, ", "))
	}
	if len(w.Compaction) > 0 {
		parts = append(parts, "compaction of "+strings.Join(w.Compaction, ", "))
	}
	return strings.Join(parts, "; ")
}
