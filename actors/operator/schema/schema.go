package schema

import (
	"encoding/json"
	"reflect"
)

// Types of values. The empty type stands for anything.
const (
	typeObject  = "object"
	typeArray   = "array"
	typeString  = "string"
	typeInteger = "integer"
	typeNumber  = "number"
	typeBoolean = "boolean"
)

// Schema is one node of a structural schema. It encodes as the API spells it.
type Schema struct {
	Description          string             `json:"description,omitempty"`
	Type                 string             `json:"type,omitempty"`
	Format               string             `json:"format,omitempty"`
	Nullable             bool               `json:"nullable,omitempty"`
	Default              json.RawMessage    `json:"default,omitempty"`
	Enum                 []json.RawMessage  `json:"enum,omitempty"`
	Pattern              string             `json:"pattern,omitempty"`
	Minimum              *float64           `json:"minimum,omitempty"`
	Maximum              *float64           `json:"maximum,omitempty"`
	MinLength            *int64             `json:"minLength,omitempty"`
	MaxLength            *int64             `json:"maxLength,omitempty"`
	MinItems             *int64             `json:"minItems,omitempty"`
	MaxItems             *int64             `json:"maxItems,omitempty"`
	MinProperties        *int64             `json:"minProperties,omitempty"`
	MaxProperties        *int64             `json:"maxProperties,omitempty"`
	Items                *Schema            `json:"items,omitempty"`
	Properties           map[string]*Schema `json:"properties,omitempty"`
	Required             []string           `json:"required,omitempty"`
	AdditionalProperties *Schema            `json:"additionalProperties,omitempty"`
	// PreserveUnknown keeps what the schema does not know of; IntOrString allows both.
	PreserveUnknown bool `json:"x-kubernetes-preserve-unknown-fields,omitempty"`
	IntOrString     bool `json:"x-kubernetes-int-or-string,omitempty"`
	// given are further words of a schema that its type gave as JSON; they stand beside those above.
	given map[string]json.RawMessage
}

// plain is a Schema without methods.
type plain Schema

// MarshalJSON implements json.Marshaler.
func (s *Schema) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal((*plain)(s))
	if err != nil || len(s.given) == 0 {
		return text, err
	}
	words := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &words); err != nil {
		return nil, err
	}
	for word, value := range s.given {
		if _, ok := words[word]; !ok {
			words[word] = value
		}
	}
	return json.Marshal(words)
}

// For derives the schema of T.
func For[T any]() (*Schema, error) { return Of(reflect.TypeFor[T]()) }

// Of derives the schema of a type. The error names the path of the first field that has none.
func Of(t reflect.Type) (*Schema, error) {
	d := &derivation{within: map[reflect.Type]bool{}}
	return d.of(t, "")
}
