package supervisionapi

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// modelPrefix is what the names of the definitions begin with.
const modelPrefix = "io.nodeactor.supervision.v1alpha1."

// models are the types with a definition, and what each is.
var models = map[reflect.Type]string{
	reflect.TypeFor[Actor]():             "Actor is one child of the supervision tree of this node. It is read-only: nodeactor restart PATH gives it a new life.",
	reflect.TypeFor[ActorSpec]():         "ActorSpec is what was declared about an actor.",
	reflect.TypeFor[ActorStatus]():       "ActorStatus is what can be seen of an actor at one moment.",
	reflect.TypeFor[MailboxStatus]():     "MailboxStatus is the state of an actor's queue.",
	reflect.TypeFor[BusyStatus]():        "BusyStatus tells of a message that is being handled.",
	reflect.TypeFor[FaultStatus]():       "FaultStatus is one fault of one generation.",
	reflect.TypeFor[ActorList]():         "ActorList is a list of actors, in the order of their paths.",
	reflect.TypeFor[FaultPolicy]():       "FaultPolicy says what happens to one child of the supervision tree, or to every member of one pool, on each kind of fault. It is read-only: the field faultPolicies of the node's configuration changes it.",
	reflect.TypeFor[FaultPolicySpec]():   "FaultPolicySpec is the policy in force.",
	reflect.TypeFor[MailboxPolicy]():     "MailboxPolicy bounds what waits for an actor.",
	reflect.TypeFor[Reactions]():         "Reactions has one cell for each kind of fault.",
	reflect.TypeFor[Reaction]():          "Reaction is one cell of a policy.",
	reflect.TypeFor[Backoff]():           "Backoff is an exponential delay.",
	reflect.TypeFor[GroupPolicy]():       "GroupPolicy is what a supervisor does for its children.",
	reflect.TypeFor[Intensity]():         "Intensity is a number of restarts within a window.",
	reflect.TypeFor[FaultPolicyStatus](): "FaultPolicyStatus tells where a policy comes from.",
	reflect.TypeFor[FaultPolicyList]():   "FaultPolicyList is a list of policies, in the order of their paths.",
}

// OpenAPIModelName names the definition of Actor.
func (Actor) OpenAPIModelName() string { return modelPrefix + "Actor" }

// OpenAPIModelName names the definition of ActorList.
func (ActorList) OpenAPIModelName() string { return modelPrefix + "ActorList" }

// OpenAPIModelName names the definition of FaultPolicy.
func (FaultPolicy) OpenAPIModelName() string { return modelPrefix + "FaultPolicy" }

// OpenAPIModelName names the definition of FaultPolicyList.
func (FaultPolicyList) OpenAPIModelName() string { return modelPrefix + "FaultPolicyList" }

// OpenAPIDefinitions returns the schema of every type of the group, read from the types themselves.
func OpenAPIDefinitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	out := map[string]common.OpenAPIDefinition{}
	for t, what := range models {
		out[modelPrefix+t.Name()] = definition(t, what, ref)
	}
	return out
}

// namer is a type of upstream that has a definition there.
type namer interface{ OpenAPIModelName() string }

// definition describes a struct.
func definition(t reflect.Type, what string, ref common.ReferenceCallback) common.OpenAPIDefinition {
	d := common.OpenAPIDefinition{Schema: spec.Schema{SchemaProps: spec.SchemaProps{
		Description: what, Type: []string{"object"}, Properties: map[string]spec.Schema{},
	}}}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || len(f.Index) > 1 && f.Index[0] > 0 {
			continue
		}
		s, dependency := property(f.Type, ref)
		s.Description = cmp.Or(f.Tag.Get("doc"), metav1.TypeMeta{}.SwaggerDoc()[name])
		d.Schema.Properties[name] = s
		if dependency != "" && !slices.Contains(d.Dependencies, dependency) {
			d.Dependencies = append(d.Dependencies, dependency)
		}
		if !strings.Contains(options, "omitempty") {
			d.Schema.Required = append(d.Schema.Required, name)
		}
	}
	return d
}

// property describes a field, and names the definition it refers to.
func property(t reflect.Type, ref common.ReferenceCallback) (s spec.Schema, dependency string) {
	switch t.Kind() {
	case reflect.Pointer:
		return property(t.Elem(), ref)
	case reflect.Slice:
		item, dependency := property(t.Elem(), ref)
		s.Type, s.Items = []string{"array"}, &spec.SchemaOrArray{Schema: &item}
		return s, dependency
	case reflect.String:
		s.Type = []string{"string"}
	case reflect.Bool:
		s.Type = []string{"boolean"}
	case reflect.Int32, reflect.Int64:
		s.Type, s.Format = []string{"integer"}, t.Kind().String()
	case reflect.Struct:
		dependency = modelName(t)
		s.Ref = ref(dependency)
	}
	return s, dependency
}

func modelName(t reflect.Type) string {
	if n, ok := reflect.Zero(t).Interface().(namer); ok {
		return n.OpenAPIModelName()
	}
	return modelPrefix + t.Name()
}
