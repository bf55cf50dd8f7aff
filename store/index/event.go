package index

import (
	"errors"
	"fmt"
)

// EventType says what happened to a key.
type EventType uint8

// The event types.
const (
	Added EventType = iota
	Modified
	Deleted
)

// String implements fmt.Stringer.
func (t EventType) String() string {
	switch t {
	case Added:
		return "ADDED"
	case Modified:
		return "MODIFIED"
	case Deleted:
		return "DELETED"
	}
	return fmt.Sprintf("EventType(%d)", uint8(t))
}

// Event is one change of one key.
type Event struct {
	Type     EventType
	Item     *Item // what is stored now; for Deleted what was stored last
	Prev     *Item // what was stored before; nil for Added
	Revision int64 // of the change

	forms *Forms
}

// Forms is where subscribers share what they derive from the event, e.g. its encoding.
func (e Event) Forms() *Forms { return e.forms }

var (
	// ErrCompacted is returned when the events asked for are no longer kept anywhere: list again and subscribe from there.
	ErrCompacted = errors.New("events are no longer kept")
	// ErrOverflow is returned when a subscriber fell behind further than events are kept: list again and subscribe from there.
	ErrOverflow = errors.New("subscriber is too far behind")
	// ErrClosed is returned when the store was closed or its engine failed.
	ErrClosed = errors.New("store is closed")
)
