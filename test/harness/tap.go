package harness

import (
	"github.com/nodeactor/nodeactor/supervision"
)

// The kit is the supervision.Tap of its systems.
type tap struct{ k *Kit }

// Deliver implements supervision.Tap.
func (t tap) Deliver(ctx supervision.Context, msg any) (bool, error) {
	t.k.trace.message(evDeliver, ctx.Path(), ctx.Generation(), msg, "")
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
	if faulted {
		t.k.trace.message(evHandled, ctx.Path(), ctx.Generation(), msg, "")
	}
	if sent {
		t.k.books.handled(faulted)
	}
}

// Sent implements supervision.Tap.
func (t tap) Sent(string, any) { t.k.books.sent() }

// DeadLetter implements supervision.Tap.
func (t tap) DeadLetter(to string, msg any, why string) {
	t.k.trace.message(evDead, to, 0, msg, why)
	t.k.books.dead(to, msg, why)
}

// Job implements supervision.Tap.
func (t tap) Job(ctx supervision.Context, j supervision.Job) supervision.Job {
	return t.k.jobs.start(ctx, j)
}
