package supervision

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nodeactor/nodeactor/supervision/core"
)

// owner is what a cell reports to: its supervisor, or the system for the root.
type owner interface {
	childReady(c *cell)
	childFault(c *cell, f Fault)
	// childExited is called once, when nothing of the cell runs any more; normal means
	// that it ended without a fault and without having been told to.
	childExited(c *cell, normal bool)
}

// phase is where a cell is between its first message and its exit.
type phase uint8

const (
	open phase = iota
	closing
	closed
)

// cell is one generation of one child: mailbox, guard and jobs.
type cell struct {
	sys     *System
	slot    *slot
	gen     uint64
	spec    *Spec
	owner   owner
	handler Handler
	ctx     context.Context
	cancel  context.CancelFunc

	fenced    atomic.Bool
	busySince atomic.Int64
	inject    atomic.Int32

	mu         sync.Mutex
	queue      []any
	head       int
	current    any
	phase      phase
	running    bool
	stopped    bool
	reported   bool
	deferReady bool
	ready      bool
	normal     bool
	holds      int
	jobs       []*jobRecord
	index      int
}

// injection codes of cell.inject; a fault kind plus one.
const noInjection = 0

func newCell(sys *System, sl *slot, gen uint64, spec *Spec, o owner, h Handler) *cell {
	c := &cell{sys: sys, slot: sl, gen: gen, spec: spec, owner: o, handler: h}
	c.ctx, c.cancel = context.WithCancel(sys.ctx)
	return c
}

// start makes the cell current and gives it its first message.
func (c *cell) start() {
	c.slot.cell.Store(c)
	c.sys.track(c)
	c.post(Started{}, true)
}

// post queues a message and wakes the cell. Internal messages are never refused by a
// limit, and are taken until the cell has exited.
func (c *cell) post(msg any, internal bool) bool {
	c.mu.Lock()
	if c.phase == closed || c.phase == closing && !internal {
		c.mu.Unlock()
		c.sys.deadLetter(c.slot.path, msg, "the child is stopping")
		return false
	}
	if !internal && c.waiting() >= c.spec.Mailbox.Limit && !c.makeRoom(msg) {
		return false
	}
	c.push(msg)
	c.wakeAndUnlock()
	return true
}

func (c *cell) waiting() int { return len(c.queue) - c.head }

func (c *cell) push(msg any) {
	if c.head > 0 && c.head == len(c.queue) {
		c.queue, c.head = c.queue[:0], 0
	}
	c.queue = append(c.queue, msg)
}

// makeRoom applies the overflow policy. When it returns false the lock is released.
func (c *cell) makeRoom(msg any) bool {
	switch c.spec.Mailbox.Overflow {
	case core.DropOldest:
		old := c.pop()
		c.mu.Unlock()
		c.sys.deadLetter(c.slot.path, old, "the mailbox was full")
		c.mu.Lock()
		return true
	case core.FaultOnOverflow:
		c.mu.Unlock()
		c.fail(fmt.Errorf("mailbox overflow at %d messages", c.spec.Mailbox.Limit), msg)
	default:
		c.mu.Unlock()
	}
	c.sys.deadLetter(c.slot.path, msg, "the mailbox is full")
	return false
}

func (c *cell) pop() any {
	msg := c.queue[c.head]
	c.queue[c.head] = nil
	c.head++
	if c.head == len(c.queue) {
		c.queue, c.head = c.queue[:0], 0
	}
	return msg
}

func (c *cell) wakeAndUnlock() {
	if c.running {
		c.mu.Unlock()
		return
	}
	c.running = true
	c.mu.Unlock()
	go c.run()
}

// run handles messages until the mailbox is empty.
func (c *cell) run() {
	for {
		c.mu.Lock()
		if c.phase == closed || c.waiting() == 0 {
			c.running = false
			c.exitIfDone()
			return
		}
		msg := c.pop()
		c.current = msg
		c.mu.Unlock()
		c.busySince.Store(c.sys.clock.Now().UnixNano())
		c.handled(msg, c.receive(msg))
	}
}

// receive is the guard around the handler.
func (c *cell) receive(msg any) (err error) {
	finished := false
	defer func() {
		if finished {
			return
		}
		panics.Add(1)
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
			return
		}
		// A Goexit unwinds this goroutine: the mailbox goes on in another one.
		go func() {
			c.handled(msg, errGoexit)
			c.run()
		}()
	}()
	if c.inject.Load() != noInjection {
		err = c.injected(msg)
	}
	if err == nil {
		err = c.handler.Receive(c, msg)
	}
	finished = true
	return err
}

// injected carries out a requested fault, once, on the first message that is not part of
// the child's life cycle.
func (c *cell) injected(msg any) error {
	switch msg.(type) {
	case Started, Stopping:
		return nil
	}
	switch code := c.inject.Swap(noInjection); FaultKind(code - 1) {
	case Panic:
		panic("injected panic")
	case Hang:
		<-c.ctx.Done()
		return nil
	case BindFailure:
		return &BindError{Addr: "injected", Err: errors.New("injected bind failure")}
	default:
		return errors.New("injected error")
	}
}

// handled closes the books of one message.
func (c *cell) handled(msg any, err error) {
	c.busySince.Store(0)
	c.mu.Lock()
	c.current, c.reported = nil, false
	if _, ok := msg.(Stopping); ok {
		c.stopped = true
		err = onlyPanics(err)
	}
	_, started := msg.(Started)
	acknowledge := started && err == nil && !c.deferReady
	c.mu.Unlock()
	switch {
	case errors.Is(err, ErrDone):
		c.end(true)
	case err != nil:
		c.fail(err, msg)
	case acknowledge:
		c.Ready()
	}
}

// onlyPanics drops plain errors of the last message: the child is going anyway.
func onlyPanics(err error) error {
	if k, _ := classify(err); err != nil && k == Panic {
		return err
	}
	return nil
}

// fail reports a fault and takes no further message.
func (c *cell) fail(err error, msg any) {
	kind, stack := classify(err)
	c.failKind(kind, err, stack, describe(msg))
}

func (c *cell) failKind(kind FaultKind, err error, stack []byte, doing string) {
	f := c.fault(kind, err, stack, doing)
	late := !c.end(false)
	c.sys.record(f, c)
	if !late {
		c.owner.childFault(c, f)
	}
}

func (c *cell) fault(kind FaultKind, err error, stack []byte, doing string) Fault {
	now := c.sys.clock.Now()
	f := Fault{Kind: kind, Path: c.slot.path, Generation: c.gen, Message: doing, Err: err, Stack: stack, Since: now, At: now}
	if ns := c.busySince.Load(); ns != 0 {
		f.Since = time.Unix(0, ns)
	}
	return f
}

func describe(msg any) string {
	if s, ok := msg.(jobName); ok {
		return "job " + string(s)
	}
	return fmt.Sprintf("%T", msg)
}

// stop asks the cell to end; safe to call again.
func (c *cell) stop() { c.end(false) }

// end begins the way out: the context ends, what waits is drained, Stopping comes last.
// It returns false when the cell was on its way out already.
func (c *cell) end(normal bool) bool {
	c.mu.Lock()
	if c.phase != open {
		c.mu.Unlock()
		return false
	}
	c.phase, c.normal = closing, normal
	dropped := c.drain()
	c.push(Stopping{})
	c.cancel()
	c.wakeAndUnlock()
	c.deadLetters(dropped)
	return true
}

func (c *cell) drain() (dropped []any) {
	for c.waiting() > 0 {
		dropped = append(dropped, c.pop())
	}
	return dropped
}

func (c *cell) deadLetters(msgs []any) {
	for _, m := range msgs {
		c.sys.deadLetter(c.slot.path, m, "the child ended")
	}
}

// hold keeps the cell from exiting until release.
func (c *cell) hold() {
	c.mu.Lock()
	c.holds++
	c.mu.Unlock()
}

func (c *cell) release() {
	c.mu.Lock()
	c.holds--
	c.exitIfDone()
}

// exitIfDone is called with the lock held and releases it.
func (c *cell) exitIfDone() {
	done := c.phase == closing && c.stopped && !c.running && c.waiting() == 0 && len(c.jobs) == 0 && c.holds == 0
	if !done {
		c.mu.Unlock()
		return
	}
	c.phase = closed
	normal := c.normal
	c.mu.Unlock()
	c.retire()
	c.owner.childExited(c, normal)
}

// abandon fences the cell and forgets it, whatever it is still doing.
func (c *cell) abandon() {
	c.fenced.Store(true)
	c.mu.Lock()
	already := c.phase == closed
	c.phase = closed
	dropped := c.drain()
	c.mu.Unlock()
	if already {
		return
	}
	c.cancel()
	c.deadLetters(dropped)
	c.retire()
	c.sys.abandoned.Add(1)
	if a, ok := c.handler.(interface{ abandonChildren() }); ok {
		a.abandonChildren()
	}
}

func (c *cell) retire() {
	c.fenced.Store(true)
	c.slot.cell.CompareAndSwap(c, nil)
	c.sys.untrack(c)
}

// The methods below make a cell the Context of its handler.

func (c *cell) Context() context.Context { return c.ctx }
func (c *cell) Path() string             { return c.slot.path }
func (c *cell) Generation() uint64       { return c.gen }
func (c *cell) Self() Ref                { return Ref{c.slot} }
func (c *cell) Clock() Clock             { return c.sys.clock }
func (c *cell) Log() *slog.Logger        { return c.sys.log.With("actor", c.slot.path) }
func (c *cell) System() *System          { return c.sys }
func (c *cell) Fence() Fence             { return Fence{c} }

func (c *cell) Send(to Ref, msg any) {
	if c.fenced.Load() {
		c.sys.deadLetter(c.slot.path, msg, "the sender is fenced")
		return
	}
	c.sys.Send(to, msg)
}

func (c *cell) After(d time.Duration, msg any) (cancel func()) {
	stop := c.sys.clock.AfterFunc(d, func() {
		c.mu.Lock()
		live := c.phase == open
		c.mu.Unlock()
		if live {
			c.post(msg, true)
		}
	})
	return func() { stop() }
}

func (c *cell) DeferReady() {
	c.mu.Lock()
	c.deferReady = true
	c.mu.Unlock()
}

func (c *cell) Ready() {
	c.mu.Lock()
	first := !c.ready && c.phase == open
	c.ready = true
	c.mu.Unlock()
	if first {
		c.owner.childReady(c)
	}
}
