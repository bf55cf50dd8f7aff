package supervision

import (
	"errors"
	"fmt"

	"github.com/nodeactor/nodeactor/supervision/core"
)

// The vocabulary of specs, from the pure core.
type (
	// FaultKind is the closed list of faults.
	FaultKind = core.FaultKind
	// Backoff is an exponential delay.
	Backoff = core.Backoff
	// Reaction is one policy cell.
	Reaction = core.Reaction
	// Mailbox bounds what waits for a child.
	Mailbox = core.Mailbox
	// Intensity is how many restarts a group bears.
	Intensity = core.Intensity
	// State is where a child is in its life.
	State = core.State
)

// The kinds of fault.
const (
	Panic       = core.Panic
	Hang        = core.Hang
	ErrorReturn = core.ErrorReturn
	BindFailure = core.BindFailure
)

// Spec is a child with its code. Start builds only the struct; it is nil for supervisors.
// Children are a supervisor's children, oldest first; Template is what a Pool makes its
// children from.
type Spec struct {
	core.ChildSpec
	Start    func() Handler
	Children []Spec
	Template *Spec
}

// Validate reports every field of the tree that is unset or impossible, wrapped in
// core.ErrSpec.
func (s *Spec) Validate() error {
	errs := []error{s.ChildSpec.Validate()}
	bad := func(cond bool, what string) {
		if cond {
			errs = append(errs, fmt.Errorf("%w: %s: %s", core.ErrSpec, s.ID, what))
		}
	}
	pool := s.Kind == core.Supervisor && s.Group.Strategy == core.Pool
	bad(s.Kind == core.Worker && s.Start == nil, "a worker without Start")
	bad(s.Kind == core.Worker && len(s.Children) > 0, "a worker with children")
	bad(pool && (s.Template == nil || len(s.Children) > 0), "a pool has a Template and no Children")
	seen := map[string]bool{}
	for i := range s.Children {
		c := &s.Children[i]
		bad(seen[c.ID], "two children are named "+c.ID)
		seen[c.ID] = true
		errs = append(errs, c.Validate())
	}
	if pool && s.Template != nil {
		errs = append(errs, s.Template.ChildSpec.Validate())
	}
	return errors.Join(errs...)
}
