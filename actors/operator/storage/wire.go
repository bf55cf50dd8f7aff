package storage

import (
	"errors"

	"github.com/nodeactor/nodeactor/cluster/lease"
)

// op is what a process asks of the host of a shared store.
type op uint8

// The ops. New ones go at the end.
const (
	opHello op = iota + 1
	opGet
	opLease
	opPage
	opWrite
	opAppend
	opRenew
	opEnd
	opWatch
	opUnwatch
)

// request goes from a process to the host. What an op does not need is left empty.
type request struct {
	// Seq is what the reply carries; opUnwatch has none.
	Seq uint64
	Op  op

	Version  int
	Sessions []lease.SessionID
	Leaving  bool

	ID       ID
	Manifest string
	Write    Write
	Writes   []lease.Write

	Bucket, Prefix, After string

	Feed   uint64
	From   Revision
	Filter Filter
}

// reply goes from the host to a process: an answer when it has a Seq, news of a feed when it has a Feed, else news of sessions.
type reply struct {
	Seq   uint64
	Fault fault

	Object   Object
	Lease    lease.Stored
	Revision Revision
	Appended []wireAppended
	Entries  []entry
	More     bool

	Feed    uint64
	Changes []Change
	// Members is not nil in news of sessions.
	Members *Membership
}

type wireAppended struct {
	Revision lease.Revision
	Fault    fault
}

// fault is an error on its way.
type fault struct {
	// Kind is the place of the sentinel in sentinels, plus one; 0 for none of them.
	Kind uint8
	Text string
}

// sentinels are the errors that are told apart on the other side. New ones go at the end.
var sentinels = []error{
	ErrConflict, ErrFenced, ErrCompacted, ErrName, ErrClosed, ErrTooLarge, ErrVersion, lease.ErrEpoch, lease.ErrSessionEnded,
}

func faultOf(err error) fault {
	if err == nil {
		return fault{}
	}
	f := fault{Text: err.Error()}
	for i, sentinel := range sentinels {
		if errors.Is(err, sentinel) {
			f.Kind = uint8(i + 1)
		}
	}
	return f
}

func (f fault) err() error {
	switch {
	case f.Text == "":
		return nil
	case f.Kind == 0 || int(f.Kind) > len(sentinels):
		return errors.New(f.Text)
	}
	return told{f.Text, sentinels[f.Kind-1]}
}

// told is an error that came over the wire.
type told struct {
	text     string
	sentinel error
}

// Error is the text as it was said on the other side.
func (t told) Error() string { return t.text }

// Unwrap returns the sentinel.
func (t told) Unwrap() error { return t.sentinel }

func wireAll(done []Appended) []wireAppended {
	wire := make([]wireAppended, len(done))
	for i, d := range done {
		wire[i] = wireAppended{d.Revision, faultOf(d.Err)}
	}
	return wire
}

func unwireAll(wire []wireAppended) []Appended {
	done := make([]Appended, len(wire))
	for i, w := range wire {
		done[i] = Appended{w.Revision, w.Fault.err()}
	}
	return done
}
