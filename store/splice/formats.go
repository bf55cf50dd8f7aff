package splice

import (
	"bytes"
	"encoding/binary"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// jsonFormat joins JSON texts.
type jsonFormat struct{}

var (
	noItems     = []byte(`"items":[]`)
	kindMember  = []byte(`"kind":"`)
	groupMember = []byte(`"apiVersion":"`)
)

// item drops kind and apiVersion, which an object within a list does not have. The serializer writes them first.
func (jsonFormat) item(raw []byte) ([]byte, bool) {
	raw = bytes.TrimRight(raw, "\n")
	rest, ok := bytes.CutPrefix(raw, []byte("{"))
	for _, member := range [][]byte{kindMember, groupMember} {
		if !ok {
			return nil, false
		}
		if rest, ok = bytes.CutPrefix(rest, member); ok {
			_, rest, ok = bytes.Cut(rest, []byte(`",`))
		}
	}
	if !ok {
		return nil, false
	}
	out := raw[len(raw)-len(rest)-1:]
	out[0] = '{'
	return out, true
}

func (jsonFormat) frame(empty []byte, _ int) (head, tail []byte, ok bool) {
	at := bytes.LastIndex(empty, noItems)
	if at < 0 {
		return nil, nil, false
	}
	at += len(noItems) - 1
	return empty[:at], empty[at:], true
}

func (jsonFormat) separator() string { return "," }
func (jsonFormat) sized() bool       { return false }

// protobufFormat joins protobuf messages in the envelope of the API machinery.
type protobufFormat struct{}

// magic begins every enveloped message.
var magic = []byte("k8s\x00")

// itemsTag begins each item of a list: field 2, bytes. Every list of the API has its items there.
const itemsTag = 2<<3 | 2

func unwrap(raw []byte) (*runtime.Unknown, bool) {
	rest, ok := bytes.CutPrefix(raw, magic)
	if !ok {
		return nil, false
	}
	var u runtime.Unknown
	if err := u.Unmarshal(rest); err != nil {
		return nil, false
	}
	return &u, true
}

// item takes the message out of its envelope and puts it behind its tag and length.
func (protobufFormat) item(raw []byte) ([]byte, bool) {
	u, ok := unwrap(raw)
	if !ok {
		return nil, false
	}
	out := make([]byte, 0, len(u.Raw)+1+binary.MaxVarintLen32)
	out = append(out, itemsTag)
	out = binary.AppendUvarint(out, uint64(len(u.Raw)))
	return append(out, u.Raw...), true
}

func (protobufFormat) frame(empty []byte, size int) (head, tail []byte, ok bool) {
	u, ok := unwrap(empty)
	if !ok {
		return nil, nil, false
	}
	// What stands before and behind the message in the envelope is taken from the envelope of the empty list.
	message := u.Raw
	at := bytes.Index(empty, append(binary.AppendUvarint([]byte{rawTag}, uint64(len(message))), message...))
	if at < 0 {
		return nil, nil, false
	}
	head = append(slices.Clone(empty[:at]), rawTag)
	head = binary.AppendUvarint(head, uint64(len(message)+size))
	return append(head, message...), empty[at+1+uvarintLen(len(message))+len(message):], true
}

func (protobufFormat) separator() string { return "" }
func (protobufFormat) sized() bool       { return true }

// rawTag begins the message within the envelope: field 2, bytes.
const rawTag = 2<<3 | 2

func uvarintLen(n int) int { return len(binary.AppendUvarint(nil, uint64(n))) }
