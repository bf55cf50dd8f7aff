package linear

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
)

// object is a key: the value it has, "" for none, and what is known of its resource version.
type object struct {
	value   string
	version uint64 // of the value; 0 = nobody was told
	newest  uint64 // the highest that anybody was told
}

// Objects is the model of single objects: consistent reads and conditional writes, with resource versions that only grow.
var Objects = model(object{}, stepObject)

func stepObject(s object, c Call, a Answer) (bool, object) {
	switch {
	case c.Do == "get" && a.Outcome == NotFound:
		return s.value == "", s
	case c.Do == "get":
		return s.is(a)
	case a.Outcome == Exists:
		return s.value != "", s
	case a.Outcome == NotFound:
		return s.value == "", s
	case a.Outcome == Conflict:
		return s.value != "" && s.value != c.Expect, s
	}
	if fits := s.value == c.Expect; !fits {
		return a.Outcome == Unknown, s
	}
	return s.become(c.Value, a.Version)
}

// is tells whether the object is what was read.
func (s object) is(a Answer) (bool, object) {
	if s.value != a.Value || s.value == "" {
		return false, s
	}
	if s.version == 0 {
		ok, next := s.become(s.value, a.Version)
		return ok, next
	}
	return s.version == a.Version, s
}

// become changes the object; a version that was told must be newer than all before.
func (s object) become(value string, version uint64) (bool, object) {
	if version == 0 {
		return true, object{value, 0, s.newest}
	}
	return version > s.newest, object{value, version, version}
}

// fenced is a register that only the holder of a lease may write, and the lease's epoch.
type fenced struct{ epoch, value string }

// Fences is the model of leases with fencing: acquire makes an epoch when the one before is still the caller's Expect; write is refused with
// Conflict unless its Expect is the epoch that lasts.
var Fences = model(fenced{}, stepFenced)

func stepFenced(s fenced, c Call, a Answer) (bool, fenced) {
	switch {
	case c.Do == "get":
		return s.value == a.Value, s
	case c.Do == "epoch":
		return s.epoch == a.Value, s
	case a.Outcome == Conflict:
		return s.epoch != c.Expect, s
	case s.epoch != c.Expect:
		return a.Outcome == Unknown, s
	case c.Do == "acquire":
		return true, fenced{c.Value, s.value}
	}
	return true, fenced{s.epoch, c.Value}
}

// passing is a key that vanishes by itself.
type passing struct {
	value string
	until int64 // not before
}

// Passing is the model of keys with a time to live: written once, there at least until Until, and never again once they are gone.
var Passing = model(passing{}, stepPassing)

func stepPassing(s passing, c Call, a Answer) (bool, passing) {
	switch {
	case c.Do == "create":
		return s.value == "", passing{c.Value, c.Until}
	case a.Outcome == OK:
		return s.value == a.Value, s
	case s.value == "":
		return true, s
	}
	return a.At >= s.until, passing{"", s.until}
}

// model makes one of a step; keys are judged by themselves.
func model[S comparable](zero S, step func(S, Call, Answer) (bool, S)) porcupine.Model {
	return porcupine.Model{
		Partition: byKey,
		Init:      func() any { return zero },
		Step: func(s, in, out any) (bool, any) {
			ok, next := step(s.(S), in.(Call), out.(Answer))
			return ok, next
		},
		Equal:             func(a, b any) bool { return a.(S) == b.(S) },
		DescribeOperation: describe,
		DescribeState:     func(s any) string { return fmt.Sprintf("%+v", s) },
	}
}

func describe(in, out any) string {
	c, a := in.(Call), out.(Answer)
	text := c.Do + " " + c.Key
	if c.Value != "" {
		text += " = " + c.Value
	}
	if c.Expect != "" {
		text += " on " + c.Expect
	}
	return fmt.Sprintf("%s: %s %s %d", text, a.Outcome, a.Value, a.Version)
}

func byKey(history []porcupine.Operation) [][]porcupine.Operation {
	by := map[string][]porcupine.Operation{}
	for _, op := range history {
		key := op.Input.(Call).Key
		by[key] = append(by[key], op)
	}
	var parts [][]porcupine.Operation
	for _, ops := range by {
		parts = append(parts, ops)
	}
	slices.SortFunc(parts, func(a, b []porcupine.Operation) int { return cmp.Compare(a[0].Call, b[0].Call) })
	return parts
}
