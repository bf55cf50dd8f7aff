package schema

import (
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"
)

// ErrNoSchema is returned when a type has no schema; the message names the field and the reason.
var ErrNoSchema = errors.New("cannot derive a schema")

// derivation is one walk over a type.
type derivation struct {
	// within are the types around the one that is looked at.
	within map[reflect.Type]bool
}

// refuse names the field and what is wrong with it.
func refuse(path, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrNoSchema, cmp.Or(path, "the type itself"), fmt.Sprintf(format, args...))
}

// of is the schema of a type at a path.
func (d *derivation) of(t reflect.Type, path string) (*Schema, error) {
	if s, err := d.special(t, path); s != nil || err != nil {
		return s, err
	}
	if s := scalar(t.Kind()); s != nil {
		return s, nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return d.pointer(t, path)
	case reflect.Slice, reflect.Array:
		return d.list(t, path)
	case reflect.Map:
		return d.dictionary(t, path)
	case reflect.Struct:
		return d.object(t, path)
	case reflect.Interface:
		return nil, refuse(path, "%s may hold anything; use a type that says what it holds, or json.RawMessage", t)
	case reflect.Uint, reflect.Uint64, reflect.Uintptr:
		return nil, refuse(path, "%s can be larger than the API keeps whole numbers; use int64 or uint32", t)
	}
	return nil, refuse(path, "%s has no form in JSON", t)
}

// scalar is the schema of a kind without parts, nil for others.
func scalar(k reflect.Kind) *Schema {
	switch k {
	case reflect.Bool:
		return &Schema{Type: typeBoolean}
	case reflect.String:
		return &Schema{Type: typeString}
	case reflect.Int, reflect.Int64:
		return &Schema{Type: typeInteger, Format: "int64"}
	case reflect.Int32:
		return within("int32", math.MinInt32, math.MaxInt32)
	case reflect.Int16:
		return within("", math.MinInt16, math.MaxInt16)
	case reflect.Int8:
		return within("", math.MinInt8, math.MaxInt8)
	case reflect.Uint32:
		return within("", 0, math.MaxUint32)
	case reflect.Uint16:
		return within("", 0, math.MaxUint16)
	case reflect.Uint8:
		return within("", 0, math.MaxUint8)
	case reflect.Float32, reflect.Float64:
		return &Schema{Type: typeNumber}
	}
	return nil
}

func within(format string, low, high float64) *Schema {
	return &Schema{Type: typeInteger, Format: format, Minimum: &low, Maximum: &high}
}

// pointer is what it points at, or null.
func (d *derivation) pointer(t reflect.Type, path string) (*Schema, error) {
	s, err := d.of(t.Elem(), path)
	if err != nil {
		return nil, err
	}
	s.Nullable = true
	return s, nil
}

// settled refuses what the API cannot check: it takes no null where it has a list of values.
func (s *Schema) settled(path string) error {
	if s.Nullable && len(s.Enum) > 0 {
		return refuse(path, "null is no value out of a list; leave the pointer away, or let the field be left out by omitempty")
	}
	return nil
}

func (d *derivation) list(t reflect.Type, path string) (*Schema, error) {
	if t.Kind() == reflect.Slice && isBytes(t) {
		return &Schema{Type: typeString, Pattern: base64, Nullable: true}, nil
	}
	leave, err := d.enter(t, path)
	if err != nil {
		return nil, err
	}
	defer leave()
	items, err := d.element(t, path+"[]")
	if err != nil {
		return nil, err
	}
	s := &Schema{Type: typeArray, Items: items}
	if t.Kind() == reflect.Slice {
		s.Nullable = true
		return s, nil
	}
	length := int64(t.Len())
	s.MinItems, s.MaxItems = &length, &length
	return s, nil
}

// base64 is the form of bytes. The format "byte", which would say the same, refuses the empty string.
const base64 = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"

// element is the schema of what a list or map holds.
func (d *derivation) element(t reflect.Type, path string) (*Schema, error) {
	s, err := d.of(t.Elem(), path)
	if err != nil {
		return nil, err
	}
	return s, s.settled(path)
}

// isBytes tells what encoding/json writes as base64.
func isBytes(t reflect.Type) bool {
	return t.Elem().Kind() == reflect.Uint8 && !encodesItself(reflect.PointerTo(t.Elem()))
}

func (d *derivation) dictionary(t reflect.Type, path string) (*Schema, error) {
	if t.Key().Kind() != reflect.String {
		return nil, refuse(path, "a map has keys of %s; only strings can be keys", t.Key())
	}
	leave, err := d.enter(t, path)
	if err != nil {
		return nil, err
	}
	defer leave()
	values, err := d.element(t, path+"{}")
	if err != nil {
		return nil, err
	}
	return &Schema{Type: typeObject, AdditionalProperties: values, Nullable: true}, nil
}

// enter refuses a type within itself.
func (d *derivation) enter(t reflect.Type, path string) (leave func(), err error) {
	if d.within[t] {
		return nil, refuse(path, "%s contains itself; hold it by name, or use json.RawMessage", t)
	}
	d.within[t] = true
	return func() { delete(d.within, t) }, nil
}

var (
	timeType      = reflect.TypeFor[time.Time]()
	rawType       = reflect.TypeFor[json.RawMessage]()
	numberType    = reflect.TypeFor[json.Number]()
	marshalerType = reflect.TypeFor[json.Marshaler]()
	textType      = reflect.TypeFor[encoding.TextMarshaler]()
)

func encodesItself(t reflect.Type) bool { return t.Implements(marshalerType) || t.Implements(textType) }

// special is the schema of a type that is not what its kind says; nil for all others.
func (d *derivation) special(t reflect.Type, path string) (*Schema, error) {
	if s, err := declared(t, path); s != nil || err != nil {
		return s, err
	}
	switch {
	case t == timeType:
		return &Schema{Type: typeString, Format: "date-time"}, nil
	case t == rawType, t.PkgPath()+"."+t.Name() == freeForm:
		return &Schema{PreserveUnknown: true, Nullable: true}, nil
	case t == numberType:
		return &Schema{Type: typeNumber}, nil
	case t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface:
		return nil, nil
	case t.Implements(marshalerType):
		return nil, refuse(path, "%s encodes itself by MarshalJSON; give it a method OpenAPISchema() []byte that says as what", t)
	case t.Implements(textType):
		return &Schema{Type: typeString}, nil
	case encodesItself(reflect.PointerTo(t)):
		return nil, refuse(path, "%s encodes itself only where it is addressable; let its method have a value receiver", t)
	}
	return nil, nil
}

// freeForm is the API's own type of objects without a schema, which says nothing of itself.
const freeForm = "k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1"
