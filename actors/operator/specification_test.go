package operator

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/nodeactor/nodeactor/actors/operator/storage"
)

// Specifications that are none.
type (
	withChannel struct {
		Parts []struct {
			Done chan int `json:"done"`
		} `json:"parts"`
	}
	withAnything  struct{ Extra any }
	withFunction  struct{ Do func() }
	withItself    struct{ Next *withItself }
	byPointer     struct{}
	withoutKind   struct{}
	withPathKind  struct{}
	withNumber    struct{ Size float64 }
	withFreeForm  struct{ Extra json.RawMessage }
	notEvenStruct string
)

func (withChannel) Kind() string   { return "WithChannel" }
func (withAnything) Kind() string  { return "WithAnything" }
func (withFunction) Kind() string  { return "WithFunction" }
func (withItself) Kind() string    { return "WithItself" }
func (*byPointer) Kind() string    { return "ByPointer" }
func (withoutKind) Kind() string   { return "" }
func (withPathKind) Kind() string  { return "with/path" }
func (withNumber) Kind() string    { return "WithNumber" }
func (withFreeForm) Kind() string  { return "WithFreeForm" }
func (notEvenStruct) Kind() string { return "NotEvenStruct" }

// refusal is what NewRunner says of a type.
func refusal[S Specification]() error {
	_, err := NewRunner(Func[S](func(context.Context, *ManifestState[S]) (Action, error) { return None(), nil }), OperatorConfig{})
	return err
}

func TestBad_SpecificationThatCannotBeOne(t *testing.T) {
	for name, test := range map[string]struct {
		err   error
		names string
	}{
		"a channel in a list": {refusal[withChannel](), "parts[].done"},
		"anything":            {refusal[withAnything](), "Extra"},
		"a function":          {refusal[withFunction](), "Do"},
		"itself":              {refusal[withItself](), "Next"},
		"a pointer":           {refusal[*byPointer](), "byPointer"},
		"no kind":             {refusal[withoutKind](), "withoutKind"},
		"a path for a kind":   {refusal[withPathKind](), "with/path"},
		"a string":            {refusal[notEvenStruct](), "notEvenStruct"},
	} {
		if !errors.Is(test.err, ErrSpecification) || !strings.Contains(test.err.Error(), test.names) {
			t.Errorf("%s: %v", name, test.err)
		}
	}
	if err := errors.Join(refusal[withNumber](), refusal[withFreeForm]()); err != nil {
		t.Errorf("refused: %v", err)
	}
}

func TestBad_ValueThatCannotBeSerialised(t *testing.T) {
	if _, _, err := Canonical(withNumber{Size: math.NaN()}); err == nil || !strings.Contains(err.Error(), "WithNumber") {
		t.Errorf("a number that is none: %v", err)
	}
	if _, _, err := Canonical(site{Tags: map[string]string{"x": strings.Repeat("x", maxValue)}}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too much: %v", err)
	}
	var s State
	if err := s.SetStatus(make(chan int)); err == nil || s.value != nil {
		t.Errorf("a status that does not serialise: %v", err)
	}
	if err := s.SetStatus(strings.Repeat("x", maxValue)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a status too large: %v", err)
	}
}

func TestTheSameContentHasTheSameHash(t *testing.T) {
	_, a, _ := Canonical(site{Pages: 1, Tags: map[string]string{"a": "1", "b": "2"}})
	_, b, _ := Canonical(site{Tags: map[string]string{"b": "2", "a": "1"}, Pages: 1})
	_, c, _ := Canonical(site{Pages: 1, Tags: map[string]string{"a": "1"}})
	if a != b || a == c || len(a) != 64 {
		t.Errorf("hashes %s %s %s", a, b, c)
	}
}

func TestBad_Configuration(t *testing.T) {
	for name, cfg := range map[string]OperatorConfig{
		"resync":      {Resync: 1},
		"concurrency": {Concurrency: -1},
		"timeout":     {ReconcileTimeout: -1},
		"back-off":    {Backoff: BackoffPolicy{Initial: 2, Factor: 1, Cap: 1}},
		"jitter":      {Backoff: BackoffPolicy{Initial: 2, Factor: 1, Cap: 2, Jitter: 1}},
		"reads twice": {Reads: []Read{Reads[site](nil), Reads[site](nil)}},
		"no read":     {Reads: []Read{{}}},
	} {
		if _, err := NewRunner(Func[site](build), cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestBad_OperatorThatIsNil: it is refused before it runs. A plane may have one to read and write manifests, and not be executed.
func TestBad_OperatorThatIsNil(t *testing.T) {
	for name, op := range map[string]Operator[site]{"nil": nil, "nil operator.Func": Func[site](nil), "nil *operator.builder": (*builder)(nil)} {
		if _, err := NewRunner(op, OperatorConfig{}); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "operator of Site") {
			t.Errorf("%s: a runner was made of it, or it was told %v", name, err)
		}
		plane, err := NewControlPlane(op, OperatorConfig{}, storage.Memory())
		if op == nil && err == nil || op != nil && err != nil {
			t.Errorf("%s: a plane of it: %v", name, err)
		}
		if err != nil {
			continue
		}
		if err := plane.AddManifest(t.Context(), "one", site{}); err != nil {
			t.Errorf("%s: cannot use the plane: %v", name, err)
		}
		ctx, stop := context.WithCancel(t.Context())
		stop() // should it execute after all, it ends
		if err := plane.Execute(ctx); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: executed, or it was told %v", name, err)
		}
	}
}
