package storage

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/nodeactor/nodeactor/cluster/lease"
)

// errRecord is returned when a stored record is not one.
var errRecord = errors.New("it is not a record of this version")

// revisionKey is the key of a revision in history; keys are in the order of their revisions.
func revisionKey(r Revision) string {
	return string(binary.BigEndian.AppendUint64(nil, r))
}

func revisionOfKey(key string) Revision { return binary.BigEndian.Uint64([]byte(key)) }

// Values of objects follow their revision.
const revisionSize = 8

func encodeObject(r Revision, value []byte) []byte {
	b := make([]byte, 0, revisionSize+len(value))
	return append(binary.BigEndian.AppendUint64(b, r), value...)
}

// decodeObject gives the revision, 0 of what is not there, and the value, which is a part of b.
func decodeObject(b []byte) (Revision, []byte) {
	if len(b) < revisionSize {
		return 0, nil
	}
	return binary.BigEndian.Uint64(b), b[revisionSize:]
}

// encodeLease writes revision, epoch, time and holder.
func encodeLease(s lease.Stored) []byte {
	b := make([]byte, 0, 32+len(s.Holder.Node)+len(s.Holder.Boot))
	b = binary.BigEndian.AppendUint64(b, uint64(s.Revision))
	b = binary.AppendUvarint(b, s.Epoch)
	at := int64(0)
	if !s.AcquiredAt.IsZero() {
		at = s.AcquiredAt.UnixNano()
	}
	b = binary.AppendVarint(b, at)
	b = appendString(b, s.Holder.Node)
	return appendString(b, s.Holder.Boot)
}

func decodeLease(b []byte) (s lease.Stored, err error) {
	if len(b) == 0 {
		return s, nil
	}
	d := decoder{b: b}
	s.Revision = lease.Revision(d.uint64())
	s.Epoch = d.uvarint()
	if at := d.varint(); at != 0 {
		s.AcquiredAt = time.Unix(0, at).UTC()
	}
	s.Holder.Node, s.Holder.Boot = d.string(), d.string()
	if d.bad {
		return lease.Stored{}, errRecord
	}
	return s, nil
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decoder reads a record; bad tells that it was not one.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) skip(n int) {
	if n <= 0 || n > len(d.b) {
		d.b, d.bad = nil, true
		return
	}
	d.b = d.b[n:]
}

func (d *decoder) uint64() (v uint64) {
	if len(d.b) >= 8 {
		v = binary.BigEndian.Uint64(d.b)
	}
	d.skip(8)
	return v
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	d.skip(n)
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	d.skip(n)
	return v
}

func (d *decoder) string() string {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.bad = true
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}
