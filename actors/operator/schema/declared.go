package schema

import (
	"encoding/json"
	"reflect"
)

// Declarer is a type that says itself what it encodes as: a structural schema as JSON.
type Declarer interface{ OpenAPISchema() []byte }

// Enumerated is a string type with a closed list of values.
type Enumerated interface{ Enum() []string }

// typed is how the API's own types declare themselves.
type typed interface {
	OpenAPISchemaType() []string
	OpenAPISchemaFormat() string
}

// formatEither is the format by which the API's types say that they are a number or a string.
const formatEither = "int-or-string"

// declared is what a type says of itself; nil when it says nothing.
func declared(t reflect.Type, path string) (*Schema, error) {
	if t.Kind() == reflect.Interface || t.Kind() == reflect.Pointer || saysOfPart(t) {
		return nil, nil
	}
	switch zero := reflect.New(t).Interface().(type) {
	case Declarer:
		return parse(t, zero.OpenAPISchema(), path)
	case typed:
		return typedSchema(zero), nil
	case Enumerated:
		return enumerated(t, zero.Enum(), path)
	}
	return nil, nil
}

// saysOfPart tells that what a struct says of itself it has from a struct that it embeds, and that it encodes as more than that.
func saysOfPart(t reflect.Type) bool {
	if t.Kind() != reflect.Struct || encodesItself(t) {
		return false
	}
	for i := range t.NumField() {
		if _, says := reflect.New(t.Field(i).Type).Interface().(Declarer); says && t.Field(i).Anonymous {
			return true
		}
	}
	return false
}

// parse reads a schema that a type gave. Words that Schema has no field for are kept.
func parse(t reflect.Type, text []byte, path string) (*Schema, error) {
	s := &Schema{}
	if err := json.Unmarshal(text, (*plain)(s)); err != nil {
		return nil, refuse(path, "OpenAPISchema of %s is no schema in JSON: %v", t, err)
	}
	if err := json.Unmarshal(text, &s.given); err != nil {
		return nil, refuse(path, "OpenAPISchema of %s is no object in JSON: %v", t, err)
	}
	return s, nil
}

// typedSchema follows the API's conventions. Such a type may encode its zero value as null.
func typedSchema(t typed) *Schema {
	if t.OpenAPISchemaFormat() == formatEither {
		return &Schema{IntOrString: true, Nullable: true}
	}
	s := &Schema{Format: t.OpenAPISchemaFormat(), Nullable: true}
	if types := t.OpenAPISchemaType(); len(types) == 1 {
		s.Type = types[0]
	} else {
		s.PreserveUnknown = true
	}
	return s
}

func enumerated(t reflect.Type, values []string, path string) (*Schema, error) {
	switch {
	case t.Kind() == reflect.Struct:
		return nil, nil // the method is that of a part
	case t.Kind() != reflect.String || len(values) == 0:
		return nil, refuse(path, "%s has a method Enum and is no string, or has no values", t)
	}
	s := &Schema{Type: typeString}
	for _, value := range values {
		s.Enum = append(s.Enum, quoted(value))
	}
	return s, nil
}

// quoted is a string as JSON.
func quoted(s string) json.RawMessage {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings always encode
	}
	return text
}
