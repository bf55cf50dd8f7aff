package operator

import "slices"

// Change is what a pass wants stored of its manifest.
type Change struct {
	// Status replaces the status; nil leaves it.
	Status *Status
	// AddFinalizers and RemoveFinalizers are put on and taken off; those of others stay as they are.
	AddFinalizers, RemoveFinalizers []string
}

func (c Change) empty() bool {
	return c.Status == nil && len(c.AddFinalizers) == 0 && len(c.RemoveFinalizers) == 0
}

// On makes the change of a record, which may be newer than what the pass saw: the rest of it is left as it is. gone is set when nothing
// holds the manifest any more and it is to be removed.
func (c Change) On(rec Record) (after Record, gone bool) {
	after = rec
	if c.Status != nil {
		after.Status = *c.Status
	}
	if rec.Deleting() && after.Status.Phase != PhaseParked {
		after.Status.Phase = PhaseDeleting // it may have been deleted while the pass ran
	}
	after.Finalizers = without(rec.Finalizers, c.RemoveFinalizers)
	for _, name := range c.AddFinalizers {
		if !rec.Deleting() && !slices.Contains(after.Finalizers, name) {
			after.Finalizers = append(after.Finalizers, name)
		}
	}
	return after, rec.Deleting() && len(after.Finalizers) == 0
}
