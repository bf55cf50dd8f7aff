package supervisionapi

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopyObject implements runtime.Object.
func (a *Actor) DeepCopyObject() runtime.Object { return a.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (l *ActorList) DeepCopyObject() runtime.Object { return l.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (p *FaultPolicy) DeepCopyObject() runtime.Object { return p.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (l *FaultPolicyList) DeepCopyObject() runtime.Object { return l.DeepCopy() }

// DeepCopy returns a copy that shares nothing.
func (a *Actor) DeepCopy() *Actor {
	out := new(Actor)
	a.copyInto(out)
	return out
}

// DeepCopy returns a copy that shares nothing.
func (l *ActorList) DeepCopy() *ActorList {
	out := &ActorList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	if l.Items != nil {
		out.Items = make([]Actor, len(l.Items))
	}
	for i := range l.Items {
		l.Items[i].copyInto(&out.Items[i])
	}
	return out
}

// DeepCopy returns a copy that shares nothing.
func (p *FaultPolicy) DeepCopy() *FaultPolicy {
	out := new(FaultPolicy)
	p.copyInto(out)
	return out
}

// DeepCopy returns a copy that shares nothing.
func (l *FaultPolicyList) DeepCopy() *FaultPolicyList {
	out := &FaultPolicyList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	if l.Items != nil {
		out.Items = make([]FaultPolicy, len(l.Items))
	}
	for i := range l.Items {
		l.Items[i].copyInto(&out.Items[i])
	}
	return out
}

func (a *Actor) copyInto(out *Actor) {
	*out = *a
	a.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	a.Status.copyInto(&out.Status)
}

func (s *ActorStatus) copyInto(out *ActorStatus) {
	*out = *s
	out.Since, out.NextTry, out.LastBeat = s.Since.DeepCopy(), s.NextTry.DeepCopy(), s.LastBeat.DeepCopy()
	out.CPUMeasured = s.CPUMeasured.DeepCopy()
	out.Mailbox.Oldest, out.Busy = copyOf(s.Mailbox.Oldest), copyOf(s.Busy)
	if s.Jobs != nil {
		out.Jobs = append([]string{}, s.Jobs...)
	}
	if s.LastFault != nil {
		out.LastFault = copyOf(s.LastFault)
		s.LastFault.At.DeepCopyInto(&out.LastFault.At)
	}
	if s.Conditions == nil {
		return
	}
	out.Conditions = make([]metav1.Condition, len(s.Conditions))
	for i := range s.Conditions {
		s.Conditions[i].DeepCopyInto(&out.Conditions[i])
	}
}

func (p *FaultPolicy) copyInto(out *FaultPolicy) {
	*out = *p
	p.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	p.Spec.Reactions.copyInto(&out.Spec.Reactions)
	out.Spec.Group = copyOf(p.Spec.Group)
	if p.Status.Overrides != nil {
		out.Status.Overrides = append([]string{}, p.Status.Overrides...)
	}
}

func (r *Reactions) copyInto(out *Reactions) {
	out.Panic.Backoff, out.Hang.Backoff = copyOf(r.Panic.Backoff), copyOf(r.Hang.Backoff)
	out.ErrorReturn.Backoff, out.BindFailure.Backoff = copyOf(r.ErrorReturn.Backoff), copyOf(r.BindFailure.Backoff)
}

// copyOf copies what a pointer points to, which must hold no pointer itself.
func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	out := *p
	return &out
}
