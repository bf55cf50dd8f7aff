package harness

import (
	"sync"

	"github.com/nodeactor/nodeactor/supervision"
)

// The kit is the supervision.Tap of its systems.
type tap struct{ k *Kit }

// Deliver implements supervision.Tap.
func (t tap) Deliver(ctx supervision.Context, msg any) (bool, error) {
	t.k.trace.message(evDeliver, ctx.Path(), ctx.Generation(), msg, "")
	t.k.observers.tell(Event{Kind: Delivered, Path: ctx.Path(), Generation: ctx.Generation(), Msg: msg})
	if in := t.k.injections.at(ctx.Path(), msg); in != nil {
		return in.act(ctx, msg)
	}
	if t.k.holds.take(ctx.Path(), msg) {
		return true, nil
	}
	return false, nil
}

// Handled implements supervision.Tap.
func (t tap) Handled(ctx supervision.Context, msg any, sent, faulted bool) {
	kind := Handled
	if faulted {
		kind = Failed
		t.k.trace.message(evHandled, ctx.Path(), ctx.Generation(), msg, "")
	}
	if sent {
		t.k.books.handled(faulted)
	}
	t.k.observers.tell(Event{Kind: kind, Path: ctx.Path(), Generation: ctx.Generation(), Msg: msg, Sent: sent})
}

// Sent implements supervision.Tap.
func (t tap) Sent(string, any) { t.k.books.sent() }

// DeadLetter implements supervision.Tap.
func (t tap) DeadLetter(to string, msg any, why string) {
	t.k.trace.message(evDead, to, 0, msg, why)
	t.k.books.dead(to, msg, why)
	t.k.observers.tell(Event{Kind: DeadLetter, Path: to, Msg: msg, Sent: true})
}

// Job implements supervision.Tap.
func (t tap) Job(ctx supervision.Context, j supervision.Job) supervision.Job {
	return t.k.jobs.start(ctx, j)
}

// EventKind names what happened to a message.
type EventKind uint8

// The events of messages.
const (
	// Delivered messages are about to be given to the handler.
	Delivered EventKind = iota
	// Handled messages were handled well, Failed ones ended in a fault.
	Handled
	Failed
	// DeadLetter messages were taken by nobody.
	DeadLetter
)

// Event is one thing that happened to a message.
type Event struct {
	Kind       EventKind
	Path       string
	Generation uint64
	Msg        any
	// Sent tells messages that somebody sent from those which a child had for itself. It is
	// not known yet of Delivered ones.
	Sent bool
}

// Observe calls f for every later event, for conditions that must always hold. It is called by
// whoever handles the message, and must not block.
func (k *Kit) Observe(f func(Event)) {
	k.observers.mu.Lock()
	defer k.observers.mu.Unlock()
	k.observers.all = append(k.observers.all, f)
}

type observers struct {
	mu  sync.Mutex
	all []func(Event)
}

func (o *observers) tell(e Event) {
	o.mu.Lock()
	all := o.all
	o.mu.Unlock()
	for _, f := range all {
		f(e)
	}
}
