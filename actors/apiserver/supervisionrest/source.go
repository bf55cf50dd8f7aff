package supervisionrest

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/nodeactor/nodeactor/actors/apiserver/supervisionapi"
	"github.com/nodeactor/nodeactor/supervision"
)

// object is an Actor or a FaultPolicy.
type object interface {
	runtime.Object
	metav1.Object
}

// source makes the objects of one kind.
type source interface {
	// each calls f for the objects in the order of the tree, beginning behind that of the path after, until f returns false.
	each(after, revision string, f func(path string, o object) bool)
	// at returns the object of a name, nil when there is none.
	at(name, revision string) object
	names() names
	empty() object
	emptyList() listing
	fields(o object) fields.Set
	columns() []metav1.TableColumnDefinition
	cells(o object, now time.Time) []any
}

// names are those of a resource.
type names struct{ plural, singular, short string }

// listing is a list that is being filled.
type listing interface {
	metav1.ListInterface
	runtime.Object
	add(o object)
}

// actors is the source of Actors.
type actors struct{ tree Tree }

func (actors) names() names       { return names{api.Actors, "actor", "act"} }
func (actors) empty() object      { return &api.Actor{} }
func (actors) emptyList() listing { return actorList{&api.ActorList{Items: []api.Actor{}}} }

type actorList struct{ *api.ActorList }

func (l actorList) add(o object) { l.Items = append(l.Items, *o.(*api.Actor)) }

func (s actors) each(after, revision string, f func(string, object) bool) {
	spec := s.tree.Spec()
	if spec == nil {
		return
	}
	walkAfter(s.tree.Inspect().Root, after, func(n supervision.Node) bool {
		return f(n.Path, actorOf(&n, spec, nil, revision))
	})
}

func (s actors) at(name, revision string) (found object) {
	path := Path(s.tree.Spec(), name)
	s.each("", revision, func(at string, o object) bool {
		if at == path {
			found = o
		}
		return found == nil
	})
	return found
}

func (actors) fields(o object) fields.Set {
	a := o.(*api.Actor)
	return fields.Set{
		fieldName: a.Name, fieldPath: a.Spec.Path, fieldRow: a.Spec.Row, fieldKind: string(a.Spec.Kind), fieldState: string(a.Status.State),
	}
}

// policies is the source of FaultPolicies.
type policies struct{ tree Tree }

func (policies) names() names  { return names{api.FaultPolicies, "faultpolicy", "fp"} }
func (policies) empty() object { return &api.FaultPolicy{} }
func (policies) emptyList() listing {
	return policyList{&api.FaultPolicyList{Items: []api.FaultPolicy{}}}
}

type policyList struct{ *api.FaultPolicyList }

func (l policyList) add(o object) { l.Items = append(l.Items, *o.(*api.FaultPolicy)) }

func (s policies) each(after, revision string, f func(string, object) bool) {
	root := s.tree.Spec()
	if root == nil {
		return
	}
	eachPolicy(root, root.ID, func(path string, spec *supervision.Spec) bool {
		if after != "" {
			if path == after {
				after = ""
			}
			return true
		}
		return f(path, policyOf(path, spec, revision))
	})
}

func (s policies) at(name, revision string) (found object) {
	s.each("", revision, func(_ string, o object) bool {
		if o.GetName() == name {
			found = o
		}
		return found == nil
	})
	return found
}

func (policies) fields(o object) fields.Set {
	p := o.(*api.FaultPolicy)
	return fields.Set{fieldName: p.Name, fieldPath: p.Spec.Path, fieldRow: p.Spec.Row, fieldKind: string(p.Spec.Kind)}
}
