package harness

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"
)

// Limits of a trace.
const (
	// traceKept is how many events of a run are kept; the hash covers all.
	traceKept = 20_000
	// traceShown is how many of them are printed.
	traceShown = 400
	// textShown bounds what is shown of one message.
	textShown = 200
)

// eventKind names what happened.
type eventKind uint8

const (
	evNote eventKind = iota
	evDeliver
	evHandled
	evDead
	evTimer
	evJob
	evCall
	evFault
)

var eventNames = [...]string{"note", "deliver", "failed", "dead letter", "timer", "job", "call", "fault"}

// event is one line of a trace.
type event struct {
	at   int64
	kind eventKind
	path string
	gen  uint64
	typ  reflect.Type
	text string
	// shown is only for people: it is not part of the hash.
	shown string
	msg   describer
}

// describer is a message that tells in traces what is in it; it must not change any more.
type describer interface{ Describe() string }

// trace is what happened in a run, and its hash.
type trace struct {
	mu sync.Mutex
	// clock tells the time; where there is no seed it is not part of the hash.
	clock func() int64
	// spoken traces show what is in messages.
	spoken bool
	all    []event
	count  int
	hash   uint64
}

// add notes an event.
func (t *trace) add(e event) {
	e.at = t.clock()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hash = mix(mix(mixText(t.hash, e.path), e.gen), uint64(e.at)<<4^uint64(e.kind))
	if e.typ != nil {
		t.hash = mixText(t.hash, e.typ.String())
	}
	if e.text != "" {
		t.hash = mixText(t.hash, e.text)
	}
	if t.count++; len(t.all) < traceKept {
		t.all = append(t.all, e)
	} else {
		t.all[(t.count-1)%traceKept] = e
	}
}

// mix adds a number to a hash.
func mix(h, x uint64) uint64 {
	h = (h ^ x) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// mixText adds a text to a hash.
func mixText(h uint64, s string) uint64 {
	h = mix(h, uint64(len(s)))
	for ; len(s) >= 8; s = s[8:] {
		h = mix(h, binary.LittleEndian.Uint64([]byte(s[:8])))
	}
	for i := range len(s) {
		h = mix(h, uint64(s[i]))
	}
	return h
}

// message is an event about a message.
func (t *trace) message(kind eventKind, path string, gen uint64, msg any, why string) {
	e := event{kind: kind, path: path, gen: gen, typ: reflect.TypeOf(msg), text: why}
	if d, ok := msg.(describer); ok {
		e.msg = d
	} else if t.spoken {
		e.shown = fmt.Sprintf("%+v", msg)
	}
	t.add(e)
}

// String is one line of the trace.
func (e event) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%12s  %-11s %s", time.Duration(e.at), eventNames[e.kind], e.path)
	if e.gen != 0 {
		fmt.Fprintf(&b, "#%d", e.gen)
	}
	if e.typ != nil {
		b.WriteString("  " + e.typ.String())
	}
	if e.msg != nil {
		e.shown = e.msg.Describe()
	}
	for _, text := range []string{e.text, e.shown} {
		if text != "" {
			b.WriteString("  " + strings.ReplaceAll(text[:min(len(text), textShown)], "\n", " "))
		}
	}
	return b.String()
}

// events are those that were kept, oldest first.
func (t *trace) events() []event {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count <= traceKept {
		return append([]event(nil), t.all...)
	}
	i := t.count % traceKept
	return append(append([]event(nil), t.all[i:]...), t.all[:i]...)
}

// String is the end of the trace.
func (t *trace) String() string {
	all := t.events()
	var b strings.Builder
	if n := t.count - traceShown; n > 0 {
		fmt.Fprintf(&b, "%14s… %d earlier events\n", "", n)
		all = all[max(0, len(all)-traceShown):]
	}
	for _, e := range all {
		b.WriteString(e.String() + "\n")
	}
	return b.String()
}

// sum is the hash of everything so far.
func (t *trace) sum() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.hash
}

// same tells whether two events count as equal.
func (e event) same(o event) bool {
	return e.at == o.at && e.kind == o.kind && e.path == o.path && e.gen == o.gen && e.typ == o.typ && e.text == o.text
}

// differs describes where two runs of one seed parted.
func differs(a, b []event) string {
	for i := range min(len(a), len(b)) {
		if !a[i].same(b[i]) {
			return fmt.Sprintf("event %d\n  first   %v\n  second  %v", i, a[i], b[i])
		}
	}
	return fmt.Sprintf("after %d events: one run has %d, the other %d", min(len(a), len(b)), len(a), len(b))
}
