// Package schema derives the schema of a Go type from the way the type encodes as JSON.
//
// What comes out is a structural OpenAPI v3 schema, the form that custom resources are declared with. It promises that whatever
// encoding/json writes for a value of the type is valid and survives the API unchanged, as far as the tags below do not ask for less. A type
// for which that cannot be promised is refused, and the error names the path of the field.
//
// # What becomes what
//
//	bool, string                     boolean, string
//	int8 to int64, uint8 to uint32   integer, with the bounds of the type
//	uint, uint64                     refused: the API keeps whole numbers up to 2^63-1
//	float32, float64                 number
//	[]byte                           string, base64
//	slices, arrays                   array; arrays with their length
//	map[string]T                     object with values of T; other keys are refused
//	struct                           object; embedded structs as encoding/json promotes them
//	*T                               T, optional, and nullable where nil is encoded
//	time.Time                        string, date-time
//	time.Duration                    integer: nanoseconds, as encoding/json writes it. Duration of this package is a string such as "1m30s".
//	encoding.TextMarshaler           string
//	json.RawMessage                  anything, kept as it is
//	OpenAPISchema() []byte           what the method says, as JSON
//	OpenAPISchemaType, -Format       what the API's own types say of themselves (times, quantities, numbers or strings)
//	Enum() []string                  a string out of these
//	any other json.Marshaler         refused: nobody knows what it writes
//	interface, chan, func, complex   refused
//	a type that contains itself      refused: a schema has an end
//
// A field is required unless it is a pointer, has a default, or may be left out (omitempty, omitzero).
//
// # Tags of fields
//
//	doc:"..."          the description
//	enum:"a,b"         allowed values of a string or number
//	min:"1" max:"9"    bounds of a number, of the length of a string, of the count of a slice or map
//	pattern:"^[a-z]+$" what a string must match
//	default:"3"        filled in by the API when the field is absent: the text of a string, JSON for all else
//
// On a slice, enum and pattern concern its elements.
package schema
