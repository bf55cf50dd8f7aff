package served_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/nodeactor/nodeactor/actors/operator"
	"github.com/nodeactor/nodeactor/actors/operator/schema"
	"github.com/nodeactor/nodeactor/actors/operator/served"
	"github.com/nodeactor/nodeactor/test/golden"
)

var sitesResource = runtimeschema.GroupVersionResource{Group: "web.example.com", Version: "v1beta1", Resource: "sitez"}

func toUnstructured(object any) (map[string]any, error) {
	return runtime.DefaultUnstructuredConverter.ToUnstructured(object)
}

func none[S operator.Specification]() operator.Func[S] {
	return func(context.Context, *operator.ManifestState[S]) (operator.Action, error) {
		return operator.None(), nil
	}
}

type noSchema struct {
	Deep []struct{ Done chan int }
}

func (noSchema) Kind() string { return "NoSchema" }

type theirs struct{}

func (theirs) Kind() string     { return "Theirs" }
func (theirs) APIGroup() string { return "apps.k8s.io" }

type noDomain struct{}

func (noDomain) Kind() string     { return "NoDomain" }
func (noDomain) APIGroup() string { return "things" }

type badDefault struct {
	N int `json:"n" min:"5" default:"1"`
}

func (badDefault) Kind() string { return "BadDefault" }

// leaf is of another kind than page, and calls itself the same in the plural.
type leaf struct{}

func (leaf) Kind() string   { return "Leaf" }
func (leaf) Plural() string { return "pages" }

func mustBind[S operator.Specification](t *testing.T, op operator.Func[S]) *served.Operator {
	t.Helper()
	o, err := served.Bind(operator.Operator[S](op), operator.OperatorConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

type oddVersion struct{}

func (oddVersion) Kind() string       { return "OddVersion" }
func (oddVersion) APIVersion() string { return "V 1" }

// TestBad_WhatCannotBeServed: each refusal comes before anything runs, and says what to change.
func TestBad_WhatCannotBeServed(t *testing.T) {
	for what, bad := range map[string]struct {
		err  error
		is   error
		says string
	}{
		"no schema":   {bindErr(none[noSchema]()), schema.ErrNoSchema, "Deep[].Done: chan int has no form in JSON"},
		"their group": {bindErr(none[theirs]()), nil, "Kubernetes' own"},
		"no domain":   {bindErr(none[noDomain]()), nil, `"things" is no domain`},
		"bad default": {bindErr(none[badDefault]()), served.ErrDefinition, "greater than or equal to 5"},
		"odd version": {bindErr(none[oddVersion]()), served.ErrDefinition, `"V 1"`},
		"owning":      {bindErr(none[page](), served.Owning("apps/Deploymint")), served.ErrUnknownKind, "apps/Deploymint"},
	} {
		if bad.err == nil || bad.is != nil && !errors.Is(bad.err, bad.is) || !strings.Contains(bad.err.Error(), bad.says) {
			t.Errorf("%s: %v", what, bad.err)
		}
	}
}

func bindErr[S operator.Specification](op operator.Func[S], opts ...served.Option) error {
	_, err := served.Bind(operator.Operator[S](op), operator.OperatorConfig{}, opts...)
	return err
}

// TestBad_TwoOperatorsForOneKind are refused, and so are kinds whose place in the tree is taken.
func TestBad_TwoOperatorsForOneKind(t *testing.T) {
	one, two := bound(t, newPages()), bound(t, newPages())
	if err := served.Check([]*served.Operator{one, two}); !errors.Is(err, operator.ErrKindTaken) || !strings.Contains(err.Error(), "Page") {
		t.Errorf("two of a kind: %v", err)
	}
	if err := served.Check([]*served.Operator{one}, "page"); !errors.Is(err, operator.ErrKindTaken) {
		t.Errorf("a taken name: %v", err)
	}
	if err := served.Check([]*served.Operator{one, mustBind(t, none[leaf]())}); !errors.Is(err, operator.ErrKindTaken) {
		t.Errorf("two kinds of one name in the API: %v", err)
	}
	reader, err := served.Bind(none[site](), operator.OperatorConfig{Reads: []operator.Read{operator.Reads[page](nil)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := served.Check([]*served.Operator{reader}); !errors.Is(err, served.ErrUnknownKind) || !strings.Contains(err.Error(), "Page") {
		t.Errorf("a read of a kind that nobody serves: %v", err)
	}
	if err := served.Check([]*served.Operator{reader, one}); err != nil {
		t.Error(err)
	}
}

// TestDefinition keeps what the API is told of a kind under review.
func TestDefinition(t *testing.T) {
	o, err := served.Bind(none[site](), operator.OperatorConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	for _, definition := range []any{bound(t, newPages()).Definition(), o.Definition()} {
		one, err := json.MarshalIndent(definition, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, one...), '\n')
	}
	golden.Check(t, "testdata/definitions.golden", text)
}
