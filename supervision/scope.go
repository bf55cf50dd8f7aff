package supervision

import (
	"context"
	"log/slog"
	"time"
)

// The methods below make a cell the Context of its handler.

// Context implements Context; it is made when somebody asks for it.
func (c *cell) Context() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil {
		c.ctx, c.cancel = context.WithCancel(c.fencedContext(c.sys.ctx))
		if c.phase != open {
			c.cancel()
		}
	}
	return c.ctx
}

// Path implements Context.
func (c *cell) Path() string { return c.slot.path }

// Generation implements Context.
func (c *cell) Generation() uint64 { return c.gen }

// Self implements Context.
func (c *cell) Self() Ref { return Ref{c.slot} }

// Clock implements Context.
func (c *cell) Clock() Clock { return c.sys.clock }

// Log implements Context.
func (c *cell) Log() *slog.Logger { return c.sys.log.With("actor", c.slot.path) }

// System implements Context.
func (c *cell) System() *System { return c.sys }

// Fence implements Context.
func (c *cell) Fence() Fence { return Fence{c} }

// Send implements Context.
func (c *cell) Send(to Ref, msg any) {
	if c.fenced.Load() {
		c.sys.sent(to.Path(), msg)
		c.sys.deadLetter(to.Path(), msg, whyFenced)
		return
	}
	c.sys.Send(to, msg)
}

// After implements Context.
func (c *cell) After(d time.Duration, msg any) (cancel func()) {
	if d <= 0 {
		c.postOwn(msg)
		return func() {}
	}
	stop := c.sys.clock.AfterFunc(d, func() { c.postOwn(msg) })
	return func() { stop() }
}

// DeferReady implements Context.
func (c *cell) DeferReady() {
	c.mu.Lock()
	c.deferReady = true
	c.mu.Unlock()
}

// Ready implements Context.
func (c *cell) Ready() {
	c.mu.Lock()
	first := !c.ready && c.phase == open
	c.ready = true
	c.watchIfNeeded()
	c.mu.Unlock()
	if first {
		c.owner.childReady(c)
	}
}
