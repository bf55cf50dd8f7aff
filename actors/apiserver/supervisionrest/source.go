package supervisionrest

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/nodeactor/nodeactor/actors/apiserver/supervisionapi"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
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
	// at returns the object of a path, nil when there is none.
	at(path, revision string) object
	// gone returns what is said of an object that is not there any more; only actors ever go.
	gone(path, revision string) object
	names() names
	// fixed is true of a kind whose objects never change.
	fixed() bool
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
func (actors) fixed() bool        { return false }
func (actors) empty() object      { return &api.Actor{} }
func (actors) emptyList() listing { return actorList{&api.ActorList{Items: []api.Actor{}}} }

type actorList struct{ *api.ActorList }

func (l actorList) add(o object) { l.Items = append(l.Items, *o.(*api.Actor)) }

func (s actors) each(after, revision string, f func(string, object) bool) {
	spec, cpu := s.tree.Spec(), s.tree.LastCPU()
	s.tree.Scan(after, func(n supervision.Node) bool { return f(n.Path, actorOf(&n, spec, cpu, revision)) })
}

func (s actors) at(path, revision string) object {
	if n, ok := s.tree.Look(path); ok {
		return actorOf(&n, s.tree.Spec(), s.tree.LastCPU(), revision)
	}
	return nil
}

// gone is all that is left to say of an actor that is not there any more.
func (s actors) gone(path, revision string) object {
	n := supervision.Node{Path: path, State: core.Done}
	root := s.tree.Spec()
	if spec, _ := place(root, path); spec != nil {
		n.Row = spec.Row
	}
	return actorOf(&n, root, nil, revision)
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
func (policies) fixed() bool   { return true }
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

func (s policies) at(path, revision string) object {
	if spec, policy := place(s.tree.Spec(), path); spec != nil && policy == path {
		return policyOf(path, spec, revision)
	}
	return nil
}

func (policies) gone(string, string) object { return nil }

func (policies) fields(o object) fields.Set {
	p := o.(*api.FaultPolicy)
	return fields.Set{fieldName: p.Name, fieldPath: p.Spec.Path, fieldRow: p.Spec.Row, fieldKind: string(p.Spec.Kind)}
}
