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

// Intensity is how many restarts a group bears within a window before it fails itself.
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
	// StartTimeout bounds the time to Ready, HangAfter one message, StopTimeout the stop.
	StartTimeout, HangAfter, StopTimeout time.Duration
	Mailbox                              Mailbox
	// Policy has one cell for each kind of fault.
	Policy [NumFaultKinds]Reaction
	// Group is what a supervisor adds.
	Group GroupSpec
}

// GroupSpec is the part of a supervisor's spec that concerns its children. For a Pool the
// Intensity is that of each child.
type GroupSpec struct {
	Strategy  Strategy
	Intensity Intensity
	// MaxAbandoned is how many children may be abandoned before the supervisor escalates.
	MaxAbandoned int
}

// ErrSpec is returned when a spec has an unset or impossible field; the message names the
// child and the field.
var ErrSpec = errors.New("invalid child spec")

// Validate reports every field that is unset or impossible.
func (s ChildSpec) Validate() error {
	var errs []error
	bad := func(cond bool, format string, args ...any) {
		if cond {
			errs = append(errs, fmt.Errorf("%w: %s: "+format, append([]any{ErrSpec, s.ID}, args...)...))
		}
	}
	bad(s.ID == "" || strings.HasPrefix(s.ID, "/") || strings.HasSuffix(s.ID, "/"), "ID %q is not a path segment", s.ID)
	bad(s.Kind != Worker && s.Kind != Supervisor, "Kind is unset")
	bad(s.Restart < Permanent || s.Restart > Temporary, "Restart is unset")
	bad(s.StartTimeout <= 0, "StartTimeout is unset")
	bad(s.HangAfter <= 0, "HangAfter is unset")
	bad(s.StopTimeout <= 0, "StopTimeout is unset")
	bad(s.Mailbox.Limit <= 0, "Mailbox.Limit is unset")
	bad(s.Mailbox.Overflow < RejectNewest || s.Mailbox.Overflow > FaultOnOverflow, "Mailbox.Overflow is unset")
	for k, cell := range s.Policy {
		bad(cell.Do < DoRestart || cell.Do > DoPark, "policy cell %s is unset", FaultKind(k))
		needs := cell.Do == DoRestart || cell.Do == DoPark
		bad(needs && !cell.Backoff.valid(), "back-off of policy cell %s is unset", FaultKind(k))
	}
	if s.Kind == Supervisor {
		bad(s.Group.Strategy < OneForOne || s.Group.Strategy > Pool, "Strategy is unset")
		bad(s.Group.Intensity.Max <= 0 || s.Group.Intensity.Within <= 0, "Intensity is unset")
		bad(s.Group.MaxAbandoned <= 0, "MaxAbandoned is unset")
	}
	return errors.Join(errs...)
}
