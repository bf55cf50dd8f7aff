package harness

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/nodeactor/nodeactor/supervision"
)

// probesRoot is the path of the pool of probes, in a tree of their own.
const probesRoot = "harness/probes"

// Probe is an actor which keeps what it is sent, so that a test can look at it. Its
// questions are about what is there once everything has settled: they need no time limit.
type Probe struct {
	k    *Kit
	ref  supervision.Ref
	mu   sync.Mutex
	kept []any
}

// Probe makes a probe.
func (k *Kit) Probe(name string) *Probe {
	if k.probes == nil {
		k.probes = k.newSystem()
		k.start(k.probes, Group("harness", OneForOne, Pool("probes", Worker("probe", nil))))
	}
	p := &Probe{k: k}
	p.ref = k.probes.Pool(probesRoot).Ensure(name, func() supervision.Handler { return p })
	return p
}

// Ref is where others send to.
func (p *Probe) Ref() supervision.Ref { return p.ref }

// Receive implements supervision.Handler.
func (p *Probe) Receive(_ supervision.Context, msg any) error {
	switch msg.(type) {
	case supervision.Started, supervision.Stopping:
		return nil
	}
	p.mu.Lock()
	p.kept = append(p.kept, msg)
	p.mu.Unlock()
	return nil
}

// next takes the oldest message.
func (p *Probe) next() (any, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.kept) == 0 {
		return nil, false
	}
	msg := p.kept[0]
	p.kept = p.kept[1:]
	return msg, true
}

// Expect takes the next messages, which must be these.
func (p *Probe) Expect(want ...any) {
	p.k.t.Helper()
	p.k.Settle()
	for _, w := range want {
		got, ok := p.next()
		if !ok {
			p.k.Fatalf("%s: no message, want %s", p.ref.Path(), show(w))
		}
		if !reflect.DeepEqual(got, w) {
			p.k.Fatalf("%s: got %s, want %s", p.ref.Path(), show(got), show(w))
		}
	}
}

// ExpectNone demands that no message is there.
func (p *Probe) ExpectNone() {
	p.k.t.Helper()
	p.k.Settle()
	if got, ok := p.next(); ok {
		p.k.Fatalf("%s: got %s, want nothing", p.ref.Path(), show(got))
	}
}

// Fish takes messages until one is to its liking, and returns that.
func (p *Probe) Fish(like func(msg any) bool) any {
	p.k.t.Helper()
	p.k.Settle()
	for skipped := 0; ; skipped++ {
		msg, ok := p.next()
		if !ok {
			p.k.Fatalf("%s: none of %d messages is the one", p.ref.Path(), skipped)
		}
		if like(msg) {
			return msg
		}
	}
}

// Take takes everything that is there.
func (p *Probe) Take() []any {
	p.k.Settle()
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.kept
	p.kept = nil
	return all
}

// Next is the next message of a probe, which must be a T.
func Next[T any](p *Probe) T {
	p.k.t.Helper()
	p.k.Settle()
	got, ok := p.next()
	if !ok {
		p.k.Fatalf("%s: no message, want a %s", p.ref.Path(), reflect.TypeFor[T]())
	}
	t, ok := got.(T)
	if !ok {
		p.k.Fatalf("%s: got %s, want a %s", p.ref.Path(), show(got), reflect.TypeFor[T]())
	}
	return t
}

func show(msg any) string { return fmt.Sprintf("%T %+v", msg, msg) }
