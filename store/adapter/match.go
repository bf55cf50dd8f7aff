package adapter

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"github.com/nodeactor/nodeactor/store/index"
)

// matcher is a compiled predicate; the zero value selects everything.
type matcher struct {
	match func(runtime.Object) (bool, error)
	// attrs is set when only the attributes count that pred computes; pc names their computation.
	attrs bool
	pred  *storage.SelectionPredicate
	pc    uintptr
}

// newMatcher compiles p. A selector of labels alone does not need the fields, which are dear to compute.
func newMatcher(p *storage.SelectionPredicate) matcher {
	switch {
	case p.Empty():
		return matcher{}
	case p.ShardSelector != nil || p.Label == nil:
		return matcher{match: p.Matches}
	case p.Field == nil || p.Field.Empty():
		return matcher{match: func(obj runtime.Object) (bool, error) { return matchLabels(p.Label, obj) }}
	}
	return matcher{match: p.Matches, attrs: true, pred: p, pc: reflect.ValueOf(p.GetAttrs).Pointer()}
}

func matchLabels(sel labels.Selector, obj runtime.Object) (bool, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return false, err
	}
	return sel.Matches(labels.Set(m.GetLabels())), nil
}

// all reports whether everything is selected.
func (m matcher) all() bool { return m.match == nil }

// matches reports whether obj is selected.
func (m matcher) matches(obj runtime.Object) (bool, error) {
	if m.match == nil {
		return true, nil
	}
	return m.match(obj)
}

// attrsSlot is where the attributes of an event's object are shared between watchers: a change of a pod is looked at by the kubelet of
// every node.
type attrsSlot struct {
	owner *formOwner
	pc    uintptr
	item  *index.Item
}

type attrs struct {
	labels labels.Set
	fields fields.Set
}

// matchesEvent is matches for an object of ev.
func (m matcher) matchesEvent(ev index.Event, owner *formOwner, item *index.Item, obj runtime.Object) (bool, error) {
	if !m.attrs {
		return m.matches(obj)
	}
	slot := attrsSlot{owner, m.pc, item}
	a, ok := ev.Forms().Get(slot).(*attrs)
	if !ok {
		l, f, err := m.pred.GetAttrs(obj)
		if err != nil {
			return false, err
		}
		a = ev.Forms().Set(slot, &attrs{l, f}).(*attrs)
	}
	return m.pred.MatchesObjectAttributes(a.labels, a.fields), nil
}
