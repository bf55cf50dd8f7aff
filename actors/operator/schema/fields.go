package schema

import (
	"reflect"
	"strings"
)

// field is one field of a struct as encoding/json sees it.
type field struct {
	reflect.StructField
	// name is the key in JSON; tagged that the tag gives it.
	name   string
	tagged bool
	// depth counts the embedded structs around it; optional tells that one of them may be nil.
	depth    int
	optional bool
	// omits tells that the field may be left out, text that it is quoted.
	omits, text bool
}

// object is the schema of a struct.
func (d *derivation) object(t reflect.Type, path string) (*Schema, error) {
	leave, err := d.enter(t, path)
	if err != nil {
		return nil, err
	}
	defer leave()
	fields, err := fieldsOf(t, path)
	if err != nil {
		return nil, err
	}
	if len(fields) == 0 && t.NumField() > 0 {
		return nil, refuse(path, "%s has no exported field, so nothing of it is encoded", t)
	}
	s := &Schema{Type: typeObject, Properties: map[string]*Schema{}}
	for _, f := range fields {
		property, err := d.property(f, join(path, f.name))
		if err != nil {
			return nil, err
		}
		s.Properties[f.name] = property
		if f.required(property) {
			s.Required = append(s.Required, f.name)
		}
	}
	return s, nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// property is the schema of a field with what its tags ask for.
func (d *derivation) property(f field, path string) (*Schema, error) {
	s, err := d.plainOrQuoted(f, path)
	if err != nil {
		return nil, err
	}
	if f.omits && isEmptyNull(f.Type) && !s.PreserveUnknown {
		s.Nullable = false
	}
	if err := f.constrain(s, path); err != nil {
		return nil, err
	}
	return s, s.settled(path)
}

// plainOrQuoted is the schema of a field's type; scalars that are written as strings are strings.
func (d *derivation) plainOrQuoted(f field, path string) (*Schema, error) {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if f.text && isScalar(t) {
		return &Schema{Type: typeString, Nullable: t != f.Type}, nil
	}
	return d.of(f.Type, path)
}

// isScalar tells what the option string of a tag works on.
func isScalar(t reflect.Type) bool {
	whole := t.Kind() == reflect.Uint || t.Kind() == reflect.Uint64
	return (whole || scalar(t.Kind()) != nil) && !encodesItself(reflect.PointerTo(t))
}

// isEmptyNull tells the types of which only the empty value is null; it is never written by a field that may be left out.
func isEmptyNull(t reflect.Type) bool {
	return t.Kind() == reflect.Slice || t.Kind() == reflect.Map || t.Kind() == reflect.Pointer && !mayBeNil(t.Elem())
}

func mayBeNil(t reflect.Type) bool {
	return t.Kind() == reflect.Slice || t.Kind() == reflect.Map || t.Kind() == reflect.Pointer
}

func (f field) required(s *Schema) bool {
	return !f.omits && !f.optional && s.Default == nil && f.Type.Kind() != reflect.Pointer
}

// fieldsOf lists the fields that encoding/json writes: those nearest to the top win, among equals one that a tag names, and
// equals without such a one hide each other.
func fieldsOf(t reflect.Type, path string) ([]field, error) {
	all, err := gather(t, path, 0, false, map[reflect.Type]bool{t: true})
	if err != nil {
		return nil, err
	}
	named := map[string][]field{}
	var names []string
	for _, f := range all {
		if named[f.name] == nil {
			names = append(names, f.name)
		}
		named[f.name] = append(named[f.name], f)
	}
	var fields []field
	for _, name := range names {
		if f, ok := dominant(named[name]); ok {
			fields = append(fields, f)
		}
	}
	return fields, nil
}

// dominant picks the field that a name stands for; false when none does.
func dominant(fields []field) (field, bool) {
	best, equals := fields[0], 1
	for _, f := range fields[1:] {
		switch {
		case f.depth < best.depth || f.depth == best.depth && f.tagged && !best.tagged:
			best, equals = f, 1
		case f.depth == best.depth && f.tagged == best.tagged:
			equals++
		}
	}
	return best, equals == 1
}

// gather lists the fields of a struct and of those it embeds.
func gather(t reflect.Type, path string, depth int, optional bool, seen map[reflect.Type]bool) ([]field, error) {
	var fields []field
	for i := range t.NumField() {
		f, skipped := fieldOf(t.Field(i))
		if skipped {
			continue
		}
		f.depth, f.optional = depth, optional
		inner, pointer := embedded(f)
		if inner == nil {
			fields = append(fields, f)
			continue
		}
		if pointer && !f.IsExported() {
			return nil, refuse(join(path, f.Name), "an embedded pointer to an unexported struct cannot be read back")
		}
		if seen[inner] {
			return nil, refuse(join(path, f.Name), "%s contains itself", inner)
		}
		seen[inner] = true
		more, err := gather(inner, path, depth+1, optional || pointer, seen)
		delete(seen, inner)
		if err != nil {
			return nil, err
		}
		fields = append(fields, more...)
	}
	return fields, nil
}

// fieldOf reads a field's tag; skipped tells that it is never encoded.
func fieldOf(sf reflect.StructField) (f field, skipped bool) {
	tag := sf.Tag.Get("json")
	name, options, _ := strings.Cut(tag, ",")
	f = field{StructField: sf, name: name, tagged: name != ""}
	if name == "" {
		f.name = sf.Name
	}
	for option := range strings.SplitSeq(options, ",") {
		f.omits = f.omits || option == "omitempty" && canBeEmpty(sf.Type) || option == "omitzero"
		f.text = f.text || option == "string"
	}
	inner, _ := embedded(f)
	return f, tag == "-" || !sf.IsExported() && inner == nil
}

// canBeEmpty tells the types that omitempty works on.
func canBeEmpty(t reflect.Type) bool {
	return t.Kind() != reflect.Struct && (t.Kind() != reflect.Array || t.Len() == 0)
}

// embedded is the struct whose fields a field promotes; nil when it is a field of its own.
func embedded(f field) (inner reflect.Type, pointer bool) {
	if !f.Anonymous || f.tagged {
		return nil, false
	}
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t, pointer = t.Elem(), true
	}
	if t.Kind() != reflect.Struct {
		return nil, false
	}
	return t, pointer
}
