package schema

import (
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"
)

type color string

func (color) Enum() []string { return []string{"red", "green"} }

type base struct {
	Host string `json:"host"`
	Port int32  `json:"port,omitempty" min:"1" max:"65535" doc:"Where it listens."`
}

type site struct {
	base
	Paint   color             `json:"paint"`
	Every   time.Duration     `json:"every"`
	Wait    Duration          `json:"wait,omitempty"`
	Names   []string          `json:"names" pattern:"^[a-z]+$" max:"3"`
	Labels  map[string]string `json:"labels,omitempty"`
	Copies  int               `json:"copies" default:"2"`
	Mode    string            `json:"mode,omitempty" enum:"fast, slow" default:"fast"`
	Limit   *int64            `json:"limit"`
	Free    json.RawMessage   `json:"free,omitempty"`
	Big     uint64            `json:"big,string"`
	At      time.Time         `json:"at"`
	Skipped int               `json:"-"`
	_       int
}

func TestSchemaOfAType(t *testing.T) {
	s, err := For[site]()
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	var have, want any
	if err := json.Unmarshal([]byte(wantSite), &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(got, &have); err != nil {
		t.Fatal(err)
	}
	a, _ := json.MarshalIndent(have, "", " ")
	b, _ := json.MarshalIndent(want, "", " ")
	if string(a) != string(b) {
		t.Errorf("got\n%s\nwant\n%s", a, b)
	}
}

const wantSite = `{"type": "object",
"required": ["host", "paint", "every", "names", "big", "at"],
"properties": {
 "host": {"type": "string"},
 "port": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 65535, "description": "Where it listens."},
 "paint": {"type": "string", "enum": ["red", "green"]},
 "every": {"type": "integer", "format": "int64"},
 "wait": {"type": "string", "pattern": "^[-+]?(([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+$|^0$"},
 "names": {"type": "array", "nullable": true, "maxItems": 3, "items": {"type": "string", "pattern": "^[a-z]+$"}},
 "labels": {"type": "object", "additionalProperties": {"type": "string"}},
 "copies": {"type": "integer", "format": "int64", "default": 2},
 "mode": {"type": "string", "enum": ["fast", "slow"], "default": "fast"},
 "limit": {"type": "integer", "format": "int64", "nullable": true},
 "free": {"x-kubernetes-preserve-unknown-fields": true, "nullable": true},
 "big": {"type": "string"},
 "at": {"type": "string", "format": "date-time"}
}}`

type node struct {
	Name string           `json:"name"`
	Kids []node           `json:"kids"`
	More map[string]*node `json:"more"`
}

type ring struct{ *ring }

type opaque struct{ _ int }

func (opaque) MarshalJSON() ([]byte, error) { return []byte("1"), nil }

type within2 struct {
	Deep struct {
		Channels []chan int `json:"channels"`
	} `json:"deep"`
}

type lower struct{ X int }

// TestBad_SchemaCannotBeDerived: each refusal names the path of the field and the reason.
func TestBad_SchemaCannotBeDerived(t *testing.T) {
	check := func(what string, err error, path, reason string) {
		t.Helper()
		if !errors.Is(err, ErrNoSchema) || !strings.Contains(err.Error(), path+": ") || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: got %v, want it to name %q and say %q", what, err, path, reason)
		}
	}
	refused := func(s *Schema, err error) error { return err }
	check("channel", refused(For[within2]()), "deep.channels[]", "no form in JSON")
	check("func", refused(For[struct{ F func() }]()), "F", "no form in JSON")
	check("complex", refused(For[struct{ C complex64 }]()), "C", "no form in JSON")
	check("interface", refused(For[struct {
		A map[string]any `json:"a"`
	}]()), "a{}", "may hold anything")
	check("recursion", refused(For[node]()), "kids[]", "contains itself")
	check("embedded recursion", refused(For[ring]()), "ring", "unexported")
	check("keys", refused(For[struct {
		M map[int]string `json:"m"`
	}]()), "m", "only strings can be keys")
	check("unexported only", refused(For[struct{ O struct{ _, _ int } }]()), "O", "no exported field")
	check("unsigned", refused(For[struct{ N uint64 }]()), "N", "use int64 or uint32")
	check("marshaler", refused(For[struct{ O opaque }]()), "O", "OpenAPISchema")
	check("pointer receiver", refused(For[struct{ B big.Int }]()), "B", "value receiver")
	check("unexported pointer", refused(For[struct{ *lower }]()), "lower", "cannot be read back")
	check("null in a list", refused(For[struct{ P *color }]()), "P", "omitempty")
	check("nulls in a list", refused(For[struct {
		P map[string]*color `json:"p,omitempty"`
	}]()), "p{}", "no value out of a list")
	check("enum", refused(For[struct {
		N int `enum:"1,two"`
	}]()), "N", `"two"`)
	check("enum of bool", refused(For[struct {
		N bool `enum:"true"`
	}]()), "N", "no boolean")
	check("pattern", refused(For[struct {
		S string `pattern:"("`
	}]()), "S", "no expression")
	check("pattern of number", refused(For[struct {
		S int `pattern:"a"`
	}]()), "S", "for strings")
	check("min", refused(For[struct {
		S string `min:"x"`
	}]()), "S", "no number")
	check("min of bool", refused(For[struct {
		S bool `min:"1"`
	}]()), "S", "for numbers")
	check("default", refused(For[struct {
		N int `default:"many"`
	}]()), "N", "no value of int")
	check("default struct", refused(For[struct {
		N base `default:"{\"hosts\":\"a\"}"`
	}]()), "N", "no value of")
	check("bad own schema", refused(For[struct{ B badOwn }]()), "B", "no schema in JSON")
	check("root", refused(For[chan int]()), "the type itself", "no form in JSON")
}

type badOwn struct{}

func (badOwn) OpenAPISchema() []byte { return []byte("[") }

type own struct{ Is string }

func (own) OpenAPISchema() []byte {
	return []byte(`{"type":"object","required":["Is"],"properties":{"Is":{"type":"string"}},"x-kubernetes-validations":[{"rule":"self.Is != 'x'"}]}`)
}

// A type's own schema is taken as it is, words that this package does not know included; one that is only a part's is not.
func TestOwnSchema(t *testing.T) {
	s, err := For[struct{ O own }]()
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(s)
	if !strings.Contains(string(text), `"x-kubernetes-validations":[{"rule":"self.Is != 'x'"}]`) {
		t.Errorf("the rule is lost: %s", text)
	}
	whole, err := For[struct {
		own
		More int `json:"more"`
	}]()
	if err != nil || whole.Properties["more"] == nil || whole.Properties["Is"] == nil {
		t.Errorf("embedding hides fields: %+v, %v", whole, err)
	}
}

type top struct {
	left
	right
	Own string `json:"same"`
}
type left struct {
	Same  int `json:"same"`
	Twice int
	Named int `json:"named"`
}
type right struct {
	Twice int
	Other int `json:"Named"`
}

// The fields are those that encoding/json writes.
func TestPromotedFields(t *testing.T) {
	s, err := For[top]()
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(top{})
	var written map[string]any
	if err := json.Unmarshal(text, &written); err != nil {
		t.Fatal(err)
	}
	if len(written) != len(s.Properties) {
		t.Fatalf("written %s, schema %v", text, s.Properties)
	}
	for name := range written {
		if s.Properties[name] == nil {
			t.Errorf("%s is written and not in the schema", name)
		}
	}
	if s.Properties["same"].Type != typeString {
		t.Errorf("same is %s", s.Properties["same"].Type)
	}
}

func TestDurationText(t *testing.T) {
	for _, d := range []time.Duration{0, 1, -90 * time.Second, 1500 * time.Microsecond, 1<<63 - 1} {
		text, err := json.Marshal(Duration(d))
		if err != nil {
			t.Fatal(err)
		}
		var back Duration
		if err := json.Unmarshal(text, &back); err != nil || time.Duration(back) != d || back.String() != d.String() {
			t.Errorf("%s came back as %v, %v", text, back, err)
		}
	}
	if err := new(Duration).UnmarshalText([]byte("soon")); err == nil {
		t.Error("soon was taken for a duration")
	}
}
