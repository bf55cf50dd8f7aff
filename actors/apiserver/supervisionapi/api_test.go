package supervisionapi

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// objects has one of each kind.
func objects() []runtime.Object {
	return []runtime.Object{&Actor{}, &ActorList{}, &FaultPolicy{}, &FaultPolicyList{}}
}

// fill gives every field of a value something, pointers and slices included.
func fill(v reflect.Value, rnd *rand.Rand) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), rnd)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), rnd)
		fill(v.Index(1), rnd)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), rnd)
			}
		}
	case reflect.String:
		v.SetString(string(rune('a' + rnd.IntN(26))))
	case reflect.Int32, reflect.Int64:
		v.SetInt(1 + rnd.Int64N(1000))
	case reflect.Bool:
		v.SetBool(true)
	}
}

// shares reports a pointer, slice or map that two values have in common.
func shares(a, b reflect.Value, path string) string {
	switch a.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice:
		if !a.IsNil() && a.Pointer() == b.Pointer() && !(a.Kind() == reflect.Pointer && a.Type().Elem().Name() == "Location") {
			return path
		}
		if a.Kind() == reflect.Pointer && !a.IsNil() {
			return shares(a.Elem(), b.Elem(), path)
		}
		for i := 0; a.Kind() == reflect.Slice && i < a.Len(); i++ {
			if s := shares(a.Index(i), b.Index(i), path+"[]"); s != "" {
				return s
			}
		}
	case reflect.Struct:
		for i := range a.NumField() {
			if s := shares(a.Field(i), b.Field(i), path+"."+a.Type().Field(i).Name); s != "" {
				return s
			}
		}
	}
	return ""
}

func TestCopiesShareNothing(t *testing.T) {
	for _, o := range objects() {
		fill(reflect.ValueOf(o).Elem(), rand.New(rand.NewPCG(1, 2)))
		c := o.DeepCopyObject()
		if !equality.Semantic.DeepEqual(o, c) {
			t.Errorf("the copy of %T differs:\n%+v\n%+v", o, o, c)
		}
		if s := shares(reflect.ValueOf(o), reflect.ValueOf(c), ""); s != "" {
			t.Errorf("%T shares %s with its copy", o, s)
		}
	}
}

func TestEveryFieldIsDescribed(t *testing.T) {
	definitions := OpenAPIDefinitions(func(path string) spec.Ref { return spec.MustCreateRef("#/" + path) })
	for name, d := range definitions {
		if d.Schema.Description == "" {
			t.Errorf("%s is not described", name)
		}
		for field, s := range d.Schema.Properties {
			if s.Description == "" {
				t.Errorf("%s.%s is not described", name, field)
			}
			if len(s.Type) == 0 && s.Ref.String() == "" {
				t.Errorf("%s.%s has no type", name, field)
			}
		}
		for _, dependency := range d.Dependencies {
			if _, ours := definitions[dependency]; !ours && !isUpstream(dependency) {
				t.Errorf("%s refers to %s, which is not defined", name, dependency)
			}
		}
	}
	if d := definitions[Actor{}.OpenAPIModelName()]; len(d.Schema.Properties) != 5 {
		t.Errorf("an actor has the fields %v", d.Schema.Properties)
	}
}

func isUpstream(name string) bool {
	const prefix = "io.k8s.apimachinery.pkg.apis.meta.v1."
	return len(name) > len(prefix) && name[:len(prefix)] == prefix
}

func TestSchemeKnowsTheKinds(t *testing.T) {
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	for _, o := range objects() {
		kinds, _, err := s.ObjectKinds(o)
		if err != nil || kinds[0].GroupVersion() != GroupVersion {
			t.Errorf("%T: got %v, %v", o, kinds, err)
		}
	}
}
