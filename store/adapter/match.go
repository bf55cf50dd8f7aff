package adapter

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

// matcher tells whether an object is selected; nil selects everything.
type matcherFunc func(runtime.Object) (bool, error)

// matcher is a compiled predicate.
type matcher struct {
	f matcherFunc
}

// newMatcher compiles p. A selector of labels alone does not need the fields, which are dear to compute.
func newMatcher(p *storage.SelectionPredicate) matcher {
	switch {
	case p.Empty():
		return matcher{}
	case (p.Field == nil || p.Field.Empty()) && p.ShardSelector == nil && p.Label != nil:
		return matcher{func(obj runtime.Object) (bool, error) {
			m, err := meta.Accessor(obj)
			if err != nil {
				return false, err
			}
			return p.Label.Matches(labels.Set(m.GetLabels())), nil
		}}
	}
	return matcher{p.Matches}
}

// all reports whether everything is selected.
func (m matcher) all() bool { return m.f == nil }

// matches reports whether obj is selected.
func (m matcher) matches(obj runtime.Object) (bool, error) {
	if m.f == nil {
		return true, nil
	}
	return m.f(obj)
}
