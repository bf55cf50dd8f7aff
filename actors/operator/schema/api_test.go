package schema_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/nodeactor/nodeactor/actors/operator/schema"
)

type grade string

func (grade) Enum() []string { return []string{"", "good", "bad"} }

type inner struct {
	A int8            `json:"a"`
	B *uint32         `json:"b"`
	C []float32       `json:"c"`
	D map[string]bool `json:"d"`
}

type embedded struct {
	inner
	Z string
}

// everything has each form that a field can have.
type everything struct {
	Bool    bool                       `json:"bool"`
	Int     int                        `json:"int"`
	Int16   int16                      `json:"int16,omitempty"`
	Int32   int32                      `json:"int32"`
	Int64   int64                      `json:"int64"`
	Uint8   uint8                      `json:"uint8"`
	Uint16  uint16                     `json:"uint16"`
	Float   float64                    `json:"float"`
	Text    string                     `json:"text"`
	Quoted  int64                      `json:"quoted,string"`
	QuotedU uint64                     `json:"quotedU,string"`
	QuotedP *uint                      `json:"quotedP,string"`
	Bytes   []byte                     `json:"bytes"`
	Bytes2  []byte                     `json:"bytes2,omitempty"`
	Five    [5]byte                    `json:"five"`
	List    []string                   `json:"list"`
	List2   []inner                    `json:"list2,omitempty"`
	Deep    [][]int32                  `json:"deep"`
	Pointer []*inner                   `json:"pointers"`
	Map     map[string]inner           `json:"map"`
	Map2    map[grade]*string          `json:"map2,omitempty"`
	Maps    map[string]map[string]bool `json:"maps"`
	Struct  inner                      `json:"struct"`
	Ptr     *inner                     `json:"ptr"`
	Ptr2    **int                      `json:"ptr2,omitempty"`
	Both    embedded                   `json:"both"`
	Grade   grade                      `json:"grade"`
	GradeP  *grade                     `json:"gradeP,omitempty"`
	Grades  []grade                    `json:"grades"`
	Time    time.Time                  `json:"time"`
	TimeP   *time.Time                 `json:"timeP"`
	Zero    time.Time                  `json:"zero,omitzero"`
	Length  time.Duration              `json:"length"`
	Length2 schema.Duration            `json:"length2"`
	Raw     json.RawMessage            `json:"raw"`
	Raw2    json.RawMessage            `json:"raw2,omitempty"`
	Empty   struct{}                   `json:"empty"`
	NoTag   string
	KTime   metav1.Time        `json:"ktime"`
	KMicro  *metav1.MicroTime  `json:"kmicro"`
	KLength metav1.Duration    `json:"klength"`
	KAmount resource.Quantity  `json:"kamount"`
	KEither intstr.IntOrString `json:"keither"`
	Weird   string             `json:"weird key/with:signs"`
	inner
}

// judge is what the API does to objects of a type: it prunes what the schema does not know, and validates.
type judge struct {
	structural *structural.Structural
	validator  validation.SchemaValidator
}

func judgeOf(t testing.TB, of reflect.Type) *judge {
	t.Helper()
	derived, err := schema.Of(of)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(&schema.Schema{Type: "object", Properties: map[string]*schema.Schema{"spec": derived}})
	if err != nil {
		t.Fatal(err)
	}
	var external apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal(text, &external); err != nil {
		t.Fatal(err)
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&external, &internal, nil); err != nil {
		t.Fatal(err)
	}
	j := &judge{}
	if j.structural, err = structural.NewStructural(&internal); err != nil {
		t.Fatalf("the schema of %v is not structural: %v", of, err)
	}
	if errs := structural.ValidateStructural(nil, j.structural); len(errs) > 0 {
		t.Fatalf("the schema of %v is not structural: %v", of, errs)
	}
	if j.validator, _, err = validation.NewSchemaValidator(&internal); err != nil {
		t.Fatal(err)
	}
	return j
}

// check encodes a value as a client does and brings it through the API.
func (j *judge) check(t testing.TB, value any) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"spec": value})
	if err != nil {
		t.Fatalf("cannot encode %+v: %v", value, err)
	}
	var object, before map[string]any
	if err := utiljson.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	if err := utiljson.Unmarshal(text, &before); err != nil {
		t.Fatal(err)
	}
	pruning.Prune(object, j.structural, false)
	if !reflect.DeepEqual(object, before) {
		t.Errorf("the API cuts something off %s: %v", text, object)
	}
	if errs := validation.ValidateCustomResource(nil, object, j.validator); len(errs) > 0 {
		t.Errorf("not valid: %v: %s", errs, text)
	}
}

// filler makes values of any type, zero and extreme ones often.
type filler struct{ *rand.Rand }

func (f filler) fill(v reflect.Value, depth int) {
	if f.special(v) || f.IntN(8) == 0 {
		return // some stay zero
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(f.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.Uint64()) >> f.IntN(64))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(f.Uint64() >> f.IntN(64))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(f.NormFloat64() * []float64{1, 1e-30, 1e30}[f.IntN(3)])
	case reflect.String:
		v.SetString(f.text())
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), f.IntN(4), 4))
		f.elements(v, depth)
	case reflect.Array:
		f.elements(v, depth)
	case reflect.Map:
		f.entries(v, depth)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				f.fill(v.Field(i), depth+1)
			}
		}
	}
}

func (f filler) elements(v reflect.Value, depth int) {
	for i := range v.Len() {
		f.fill(v.Index(i), depth+1)
	}
}

func (f filler) entries(v reflect.Value, depth int) {
	v.Set(reflect.MakeMap(v.Type()))
	for range f.IntN(4) {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(key, depth+1)
		f.fill(value, depth+1)
		v.SetMapIndex(key, value)
	}
}

func (f filler) text() string {
	return []string{"", "a", "red", "null", "12", "päth/with\"signs\"", "\x00", "line\nline", "\xff"}[f.IntN(9)]
}

// special fills types whose values are not any of their kind.
func (f filler) special(v reflect.Value) bool {
	switch p := v.Addr().Interface().(type) {
	case *time.Time:
		*p = time.Unix(f.Int64N(1<<37), f.Int64N(1e9)).In(time.FixedZone("", f.IntN(3)*3600))
	case *metav1.Time:
		p.Time = time.Unix(f.Int64N(1<<37)*f.Int64N(2), 0)
	case *metav1.MicroTime:
		p.Time = time.Unix(f.Int64N(1<<37), f.Int64N(1e9))
	case *resource.Quantity:
		*p = []resource.Quantity{{}, resource.MustParse("100m"), resource.MustParse("3Gi")}[f.IntN(3)]
	case *intstr.IntOrString:
		*p = []intstr.IntOrString{{}, intstr.FromInt32(7), intstr.FromString("30%")}[f.IntN(3)]
	case *metav1.FieldsV1:
		*p = *metav1.NewFieldsV1(`{"f:x":{}}`)
	case *json.RawMessage:
		*p = []json.RawMessage{nil, []byte("null"), []byte("1"), []byte(`{"a":{"b":[1,"x"]}}`), []byte(`["x"]`)}[f.IntN(5)]
	case *grade:
		*p = []grade{"", "good", "bad"}[f.IntN(3)]
	default:
		return false
	}
	return true
}

func values(t testing.TB, j *judge, of reflect.Type, seed uint64) {
	v := reflect.New(of).Elem()
	filler{rand.New(rand.NewPCG(seed, 7))}.fill(v, 0)
	j.check(t, v.Interface())
}

// FuzzWhatATypeEncodesIsValid: the API accepts what the type encodes as and keeps all of it.
func FuzzWhatATypeEncodesIsValid(f *testing.F) {
	of := reflect.TypeFor[everything]()
	j := judgeOf(f, of)
	for seed := range uint64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { values(t, j, of, seed) })
}

// Types that are made at random of everything that a field can be are valid, too.
func TestRandomTypes(t *testing.T) {
	parts := slices.Collect(fieldTypes(reflect.TypeFor[everything]()))
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 3))
		var fields []reflect.StructField
		for i := range 1 + random.IntN(6) {
			part := parts[random.IntN(len(parts))]
			switch random.IntN(4) {
			case 0:
				part = reflect.SliceOf(part)
			case 1:
				part = reflect.MapOf(reflect.TypeFor[string](), part)
			case 2:
				if part.Name() != "grade" { // which may not be null
					part = reflect.PointerTo(part)
				}
			}
			tag := []string{`json:"x%"`, `json:"x%,omitempty"`, `json:"x%,omitzero"`}[random.IntN(3)]
			fields = append(fields, reflect.StructField{Name: string(rune('A' + i)), Type: part, Tag: reflect.StructTag(tagged(tag, i))})
		}
		of := reflect.StructOf(fields)
		j := judgeOf(t, of)
		for again := range uint64(5) {
			values(t, j, of, seed*100+again)
		}
		if t.Failed() {
			t.Fatalf("seed %d: %v", seed, of)
		}
	}
}

func tagged(tag string, i int) string {
	out := []byte(tag)
	out[slices.Index(out, '%')] = byte('a' + i)
	return string(out)
}

func fieldTypes(of reflect.Type) func(func(reflect.Type) bool) {
	return func(yield func(reflect.Type) bool) {
		for i := range of.NumField() {
			if f := of.Field(i); f.IsExported() && f.Type.Kind() != reflect.Uint && f.Name != "QuotedU" && f.Name != "QuotedP" && f.Name != "GradeP" && !yield(f.Type) {
				return
			}
		}
	}
}

// The API's own types can be parts of a specification.
func TestPodTemplateInASpecification(t *testing.T) {
	of := reflect.TypeFor[struct {
		Template corev1.PodTemplateSpec `json:"template"`
	}]()
	j := judgeOf(t, of)
	for seed := range uint64(20) {
		values(t, j, of, seed)
	}
}

// What the tags ask for is asked for by the API.
func TestTagsAreEnforced(t *testing.T) {
	type small struct {
		Name  string   `json:"name" min:"2" max:"4" pattern:"^[a-z]*$"`
		Count int      `json:"count" min:"1" max:"3"`
		Mode  string   `json:"mode,omitempty" enum:"fast,slow"`
		List  []string `json:"list,omitempty" max:"1" enum:"a,b"`
	}
	j := judgeOf(t, reflect.TypeFor[small]())
	j.check(t, small{Name: "abc", Count: 2, Mode: "slow", List: []string{"a"}})
	for text, valid := range map[string]bool{
		`{"name":"abc","count":1}`:                         true,
		`{"name":"a","count":1}`:                           false,
		`{"name":"abcde","count":1}`:                       false,
		`{"name":"AB","count":1}`:                          false,
		`{"name":"abc","count":0}`:                         false,
		`{"name":"abc","count":4}`:                         false,
		`{"name":"abc","count":"2"}`:                       false,
		`{"name":"abc"}`:                                   false,
		`{"name":"abc","count":1,"mode":"other"}`:          false,
		`{"name":"abc","count":1,"list":["a","b"]}`:        false,
		`{"name":"abc","count":1,"list":["c"]}`:            false,
		`{"name":"abc","count":1.5}`:                       false,
		`{"name":null,"count":1}`:                          false,
		`{"name":"abc","count":9223372036854775807}`:       false,
		`{"name":"abc","count":3,"mode":"fast","list":[]}`: true,
	} {
		var spec any
		if err := utiljson.Unmarshal([]byte(text), &spec); err != nil {
			t.Fatal(err)
		}
		errs := validation.ValidateCustomResource(nil, map[string]any{"spec": spec}, j.validator)
		if (len(errs) == 0) != valid {
			t.Errorf("%s: %v", text, errs)
		}
	}
}
