package gc

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodeactor/nodeactor/actors/cache"
)

// ownerState is what is known of one owner of an object.
type ownerState int

// Owner states. New ones go at the end.
const (
	// solid is an owner that exists and stays, or that cannot be resolved.
	solid ownerState = iota
	// absent is an owner that does not exist.
	absent
	// leaving is an owner that waits for its dependents to be deleted.
	leaving
)

// item is an object with what a decision about it needs.
type item struct {
	*cache.Meta
	// owners are the states of Meta.Owners, one each.
	owners []ownerState
	// dependents are the objects that name this one as owner.
	dependents []*cache.Meta
}

// verb is what is to be done about an object.
type verb int

// Verbs. New ones go at the end.
const (
	// rest does nothing.
	rest verb = iota
	// orphan takes the references to the object from its dependents, then its orphan finalizer.
	orphan
	// release takes the object's foreground finalizer, since no dependent blocks it.
	release
	// forget takes references from the object.
	forget
	// unblock marks the object's references as not blocking, then deletes it in the foreground: its dependents lead back to it.
	unblock
	// remove deletes the object.
	remove
)

// verdict is a decision. refs are the owners whose references go, policy is how to delete.
type verdict struct {
	verb   verb
	refs   []types.UID
	policy metav1.DeletionPropagation
}

// decide judges one object.
func decide(i item) verdict {
	waits := waitsForDependents(i.Meta)
	switch {
	case i.Deleting && i.HasFinalizer(metav1.FinalizerOrphanDependents):
		return verdict{verb: orphan}
	case waits && !blocked(i):
		return verdict{verb: release}
	case i.Deleting && !waits, len(i.owners) == 0:
		return verdict{}
	}
	return judgeOwners(i)
}

// judgeOwners decides by the object's owners.
func judgeOwners(i item) verdict {
	var gone, going []types.UID
	present := false
	for n, state := range i.owners {
		switch state {
		case solid:
			present = true
		case absent:
			gone = append(gone, i.Owners[n].UID)
		case leaving:
			going = append(going, i.Owners[n].UID)
		}
	}
	switch {
	case present && len(gone)+len(going) == 0:
		return verdict{}
	case present:
		return verdict{verb: forget, refs: append(gone, going...)}
	case waitsForDependents(i.Meta):
		return verdict{} // on its way out in the foreground already
	case len(going) > 0 && len(i.dependents) > 0:
		return inForeground(i)
	}
	return verdict{verb: remove, policy: policyOf(i.Meta)}
}

// inForeground deletes an object whose owner waits for it together with its own dependents. When one of those waits as well, the
// references may form a circle, which is opened.
func inForeground(i item) verdict {
	for _, dependent := range i.dependents {
		if waitsForDependents(dependent) {
			return verdict{verb: unblock, policy: metav1.DeletePropagationForeground}
		}
	}
	return verdict{verb: remove, policy: metav1.DeletePropagationForeground}
}

// policyOf is how an object wants its dependents treated, by the finalizers it has.
func policyOf(m *cache.Meta) metav1.DeletionPropagation {
	switch {
	case m.HasFinalizer(metav1.FinalizerOrphanDependents):
		return metav1.DeletePropagationOrphan
	case m.HasFinalizer(metav1.FinalizerDeleteDependents):
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}

// waitsForDependents tells whether an object is being deleted in the foreground.
func waitsForDependents(m *cache.Meta) bool {
	return m.Deleting && m.HasFinalizer(metav1.FinalizerDeleteDependents)
}

// blocked tells whether a dependent with a blocking reference still exists.
func blocked(i item) bool {
	for _, dependent := range i.dependents {
		for _, owner := range dependent.Owners {
			if owner.UID == i.UID && owner.Blocks {
				return true
			}
		}
	}
	return false
}
