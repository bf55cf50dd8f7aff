package schema

import (
	"bytes"
	"encoding/json"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// constrain applies the tags of a field to its schema.
func (f field) constrain(s *Schema, path string) error {
	if doc := f.Tag.Get("doc"); doc != "" {
		s.Description = doc
	}
	element := s
	if s.Type == typeArray && s.Items != nil {
		element = s.Items
	}
	for _, apply := range []func(s, element *Schema, path string) error{f.enum, f.pattern, f.minimum, f.maximum, f.preset} {
		if err := apply(s, element, path); err != nil {
			return err
		}
	}
	return nil
}

// enum lists the allowed values of a string or number.
func (f field) enum(_, element *Schema, path string) error {
	list, ok := f.Tag.Lookup("enum")
	if !ok {
		return nil
	}
	element.Enum = nil
	for word := range strings.SplitSeq(list, ",") {
		value, ok := literal(element.Type, strings.TrimSpace(word))
		if !ok {
			return refuse(path, "the tag enum:%q has %q, which is no %s", list, word, element.Type)
		}
		element.Enum = append(element.Enum, value)
	}
	return element.settled(path)
}

// literal writes a word of a tag as JSON; false when it is not of that type.
func literal(kind, word string) (json.RawMessage, bool) {
	switch kind {
	case typeString:
		return quoted(word), true
	case typeInteger:
		_, err := strconv.ParseInt(word, 10, 64)
		return json.RawMessage(word), err == nil
	case typeNumber:
		_, err := strconv.ParseFloat(word, 64)
		return json.RawMessage(word), err == nil && json.Valid([]byte(word))
	}
	return nil, false
}

func (f field) pattern(_, element *Schema, path string) error {
	pattern, ok := f.Tag.Lookup("pattern")
	if !ok {
		return nil
	}
	if element.Type != typeString {
		return refuse(path, "the tag pattern is for strings")
	}
	if _, err := regexp.Compile(pattern); err != nil {
		return refuse(path, "the tag pattern:%q is no expression: %v", pattern, err)
	}
	element.Pattern = pattern
	return nil
}

func (f field) minimum(s, _ *Schema, path string) error {
	return f.bound("min", s, path, map[string]**int64{
		typeString: &s.MinLength, typeArray: &s.MinItems, typeObject: &s.MinProperties,
	}, &s.Minimum)
}

func (f field) maximum(s, _ *Schema, path string) error {
	return f.bound("max", s, path, map[string]**int64{
		typeString: &s.MaxLength, typeArray: &s.MaxItems, typeObject: &s.MaxProperties,
	}, &s.Maximum)
}

// bound sets a bound of a number, or of a count.
func (f field) bound(tag string, s *Schema, path string, counts map[string]**int64, number **float64) error {
	text, ok := f.Tag.Lookup(tag)
	if !ok {
		return nil
	}
	value, err := strconv.ParseFloat(text, 64)
	count := counts[s.Type]
	switch {
	case err != nil:
		return refuse(path, "the tag %s:%q is no number", tag, text)
	case s.Type == typeNumber || s.Type == typeInteger:
		*number = &value
	case count == nil || s.Properties != nil:
		return refuse(path, "the tag %s is for numbers, strings, slices and maps", tag)
	default:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return refuse(path, "the tag %s:%q is no count", tag, text)
		}
		*count = &n
	}
	return nil
}

// preset sets what the API fills in.
func (f field) preset(s, _ *Schema, path string) error {
	text, ok := f.Tag.Lookup("default")
	if !ok {
		return nil
	}
	value := json.RawMessage(text)
	if s.Type == typeString {
		value = quoted(text)
	}
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(reflect.New(f.Type).Interface()); err != nil || !json.Valid(value) || f.text {
		return refuse(path, "the tag default:%q is no value of %s", text, f.Type)
	}
	s.Default = value
	return nil
}
