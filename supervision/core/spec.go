package core

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind tells workers from supervisors.
type Kind uint8

// The kinds of child.
const (
	Worker Kind = iota + 1
	Supervisor
)

// Restart says after which end a child is started again, as in OTP.
type Restart uint8

// The restart types.
const (
	// Permanent children are always started again.
	Permanent Restart = iota + 1
	// Transient children are started again only after a fault.
	Transient
	// Temporary children are never started again.
	Temporary
)

// Strategy says which siblings share a child's fate.
type Strategy uint8

// The strategies of a group.
const (
	OneForOne Strategy = iota + 1
	OneForAll
	RestForOne
	// Pool has children of one template that come and go; each has a budget of its own and
	// is parked beyond it.
	Pool
)

// ReactionKind is what a policy cell does.
type ReactionKind uint8

// The reactions. The zero value is an unset cell and invalid.
const (
	// DoRestart applies the group's strategy, within its budget.
	DoRestart ReactionKind = iota + 1
	// DoStop leaves the child dead and visible.
	DoStop
	// DoEscalate fails the supervisor with the child's fault.
	DoEscalate
	// DoPark keeps the child down until the capped back-off has passed.
	DoPark
)

// Overflow says what a full mailbox does with one more message.
type Overflow uint8

// The overflow policies.
const (
	RejectNewest Overflow = iota + 1
	DropOldest
	// FaultOnOverflow turns the overflow into an ErrorReturn of the receiver.
	FaultOnOverflow
)

// Reaction is one policy cell.
type Reaction struct {
	Do      ReactionKind
	Backoff Backoff
}

// Mailbox bounds what waits for a child.
type Mailbox struct {
	Limit    int
	Overflow Overflow
}

// Intensity is how many restarts are borne within a window.
type Intensity struct {
	Max    int
	Within time.Duration
}

// ChildSpec is everything that is declared about a child but its code. All durations are
// explicit: zero is invalid.
type ChildSpec struct {
	// ID is the child's stable path segment.
	ID string
	// Row is the name of the catalog row the spec came from.
	Row  string
	Kind Kind
	// Restart, Significant: as in OTP; the end of a significant child ends its supervisor.
	Restart     Restart
	Significant bool
	// Expendable members of a pool hold nothing but a goroutine when they hang, and whoever starts them bounds how many do: those that are
	// abandoned count neither against the pool's limit nor against the root's.
	Expendable bool
	// StartTimeout bounds the time to Ready, HangAfter one message, StopTimeout the stop.
	StartTimeout, HangAfter, StopTimeout time.Duration
	Mailbox                              Mailbox
	// Policy has one cell for each kind of fault.
	Policy [NumFaultKinds]Reaction
	// Group is what a supervisor adds.
	Group GroupSpec
}

// GroupSpec is the part of a supervisor's spec that concerns its children. For a Pool the
// intensities are those of each child.
type GroupSpec struct {
	Strategy Strategy
	// Intensity bounds a burst of restarts, Sustained what may go on for longer: its window
	// is longer and its rate lower. A restart has to be within both.
	Intensity, Sustained Intensity
	// MaxAbandoned is how many children may be abandoned before the supervisor escalates.
	MaxAbandoned int
}

// Limits of a spec.
const (
	// MaxMailbox bounds Mailbox.Limit.
	MaxMailbox = 1 << 20
	// MaxIntensity bounds Intensity.Max and with it the memory of a budget.
	MaxIntensity = 1000
)

// ErrSpec is returned when a spec has an unset or impossible field; the message names the
// child and the field.
var ErrSpec = errors.New("invalid child spec")

// SpecError names the field of a child that is unset or impossible. It is an ErrSpec.
type SpecError struct {
	// ID is the child's, Field the name of the field or of the rule.
	ID, Field string
	// Unset tells a forgotten field from an impossible value.
	Unset bool
}

// Error says what is wrong with what.
func (e *SpecError) Error() string {
	verdict := "is impossible"
	if e.Unset {
		verdict = "is unset"
	}
	return fmt.Sprintf("%v: %s: %s %s", ErrSpec, e.ID, e.Field, verdict)
}

// Is makes every SpecError an ErrSpec.
func (e *SpecError) Is(target error) bool { return target == ErrSpec }

// findings collects what is wrong with one child.
type findings struct {
	id   string
	errs []error
}

// require notes an unset field when the value is zero, an impossible one when it is not ok.
func (f *findings) require(field string, zero, ok bool) {
	if zero || !ok {
		f.errs = append(f.errs, &SpecError{ID: f.id, Field: field, Unset: zero})
	}
}

// Validate reports every field that is unset or impossible; each finding is a *SpecError.
func (s ChildSpec) Validate() error {
	f := &findings{id: s.ID}
	f.require("ID", s.ID == "", !strings.HasPrefix(s.ID, "/") && !strings.HasSuffix(s.ID, "/"))
	f.require("Kind", s.Kind == 0, s.Kind <= Supervisor)
	f.require("Restart", s.Restart == 0, s.Restart <= Temporary)
	f.require("StartTimeout", s.StartTimeout == 0, s.StartTimeout > 0)
	f.require("HangAfter", s.HangAfter == 0, s.HangAfter > 0)
	f.require("StopTimeout", s.StopTimeout == 0, s.StopTimeout > 0)
	f.require("Mailbox.Limit", s.Mailbox.Limit == 0, s.Mailbox.Limit > 0 && s.Mailbox.Limit <= MaxMailbox)
	f.require("Mailbox.Overflow", s.Mailbox.Overflow == 0, s.Mailbox.Overflow <= FaultOnOverflow)
	for k := range s.Policy {
		s.Policy[k].check(f, "Policy["+FaultKind(k).String()+"]")
	}
	if s.Kind == Supervisor {
		s.Group.check(f)
	}
	return errors.Join(f.errs...)
}

func (r Reaction) check(f *findings, field string) {
	f.require(field, r.Do == 0, r.Do <= DoPark)
	if r.Do == DoRestart || r.Do == DoPark {
		f.require(field+".Backoff", r.Backoff == Backoff{}, r.Backoff.valid())
	}
}

func (g GroupSpec) check(f *findings) {
	f.require("Strategy", g.Strategy == 0, g.Strategy <= Pool)
	g.Intensity.check(f, "Intensity")
	g.Sustained.check(f, "Sustained")
	f.require("Sustained beside Intensity", false, g.Sustained.SlowerThan(g.Intensity))
	f.require("MaxAbandoned", g.MaxAbandoned == 0, g.MaxAbandoned > 0)
}

func (in Intensity) check(f *findings, field string) {
	f.require(field+".Max", in.Max == 0, in.Max > 0 && in.Max <= MaxIntensity)
	f.require(field+".Within", in.Within == 0, in.Within > 0)
}

// SlowerThan tells whether the intensity limits something that the burst does not, and the
// other way round. Unset ones are found elsewhere.
func (in Intensity) SlowerThan(burst Intensity) bool {
	if in.Max <= 0 || in.Within <= 0 || burst.Max <= 0 || burst.Within <= 0 {
		return true
	}
	lower := float64(in.Max)/float64(in.Within) < float64(burst.Max)/float64(burst.Within)
	return lower && in.Max >= burst.Max && in.Within > burst.Within
}
