package supervision

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/nodeactor/nodeactor/supervision/core"
)

// Reasons of dead letters.
const (
	whyNobody   = "it was sent to nobody"
	whyAbsent   = "the child is not running"
	whyStopping = "the child is stopping"
	whyEnded    = "the child ended"
	whyFull     = "the mailbox is full"
	whyDropped  = "the mailbox was full and this was its oldest message"
	whyFenced   = "the sender is fenced"
)

// errOverflow is returned when a mailbox is full whose policy makes that a fault.
var errOverflow = errors.New("the mailbox is full")

// owner is what a cell reports to: its supervisor, or the system for the root.
type owner interface {
	childReady(c *cell)
	childFault(c *cell, f Fault)
	// childExited is called once, when nothing of the cell runs any more; normal means
	// that it ended without a fault and without having been told to.
	childExited(c *cell, normal bool)
	// childReturned is called once for a cell that was abandoned and has ended after all.
	childReturned(c *cell)
}

// phase is where a cell is between its first message and its exit.
type phase uint8

const (
	open phase = iota
	closing
	closed
)

// cell is one generation of one child: mailbox, guard and jobs. It is small, because there
// is one for each manifest.
type cell struct {
	sys   *System
	slot  *slot
	spec  *Spec
	owner owner
	// build makes the handler of a worker.
	build func() Handler
	// work is the method value of run, so that waking the cell allocates nothing.
	work func()
	gen  uint64
	born int64

	fenced atomic.Bool
	// seq counts the begins and ends of messages: it is odd while one is handled. The watchdog
	// notes when it first saw which value, so that a message costs no look at the clock.
	seq     atomic.Uint64
	seenSeq atomic.Uint64
	seenAt  atomic.Int64
	// watched is set while the watchdog has more to look at than seq.
	watched atomic.Bool

	mu      sync.Mutex
	handler Handler
	// control holds what supervision itself sends: it comes first and knows no limit.
	control queue
	inbox   queue
	current any
	ctx     context.Context
	cancel  context.CancelFunc
	jobs    []*jobRecord
	index   int32
	holds   int32
	phase   phase
	// unborn: Started has not been handled. running: a goroutine handles messages.
	unborn, running bool
	// told: Stopping may be given out. saidStop: it was. stopped: it was handled.
	told, saidStop, stopped bool
	// reported: the hang of the current message is known.
	reported, lateStart bool
	// own: supervision or the child itself queued the current message.
	own                      bool
	deferReady, ready        bool
	normal, zombie, returned bool
	// left: the cell is listed among those that were left behind; guarded by System.mu.
	left bool
}

// newCell makes a cell that queues messages until it is started. Workers have no handler yet:
// build is called under the guard.
func newCell(sys *System, sl *slot, gen uint64, spec *Spec, o owner) *cell {
	c := &cell{sys: sys, slot: sl, gen: gen, spec: spec, owner: o, build: spec.Start, unborn: true, running: true}
	c.work = c.run
	return c
}

// start gives the cell its first message.
func (c *cell) start() {
	c.born = c.sys.watched()
	c.watched.Store(true)
	c.sys.track(c)
	c.sys.launch(c)
}

// post queues a message and wakes the cell; false means that it became a dead letter.
func (c *cell) post(msg any) bool {
	c.mu.Lock()
	if c.phase != open {
		c.mu.Unlock()
		return c.sys.deadLetter(c.slot.path, msg, whyStopping)
	}
	if c.inbox.n >= c.spec.Mailbox.Limit {
		return c.overflow(msg)
	}
	c.inbox.push(msg, c.sys.dog.now.Load())
	c.wakeAndUnlock()
	return true
}

// postControl queues a message of supervision itself. It is taken until the cell has exited,
// and is not worth a dead letter after that.
func (c *cell) postControl(msg any) {
	c.mu.Lock()
	if c.phase == closed {
		c.mu.Unlock()
		return
	}
	c.control.push(msg, c.sys.dog.now.Load())
	c.wakeAndUnlock()
}

// postOwn queues a message which the generation has for itself, while it is open.
func (c *cell) postOwn(msg any) {
	c.mu.Lock()
	if c.phase != open {
		c.mu.Unlock()
		return
	}
	c.control.push(msg, c.sys.dog.now.Load())
	c.wakeAndUnlock()
}

// overflow applies the overflow policy; it is called with the lock held and releases it.
func (c *cell) overflow(msg any) bool {
	if c.spec.Mailbox.Overflow == core.DropOldest {
		old := c.inbox.pop()
		c.inbox.push(msg, c.sys.dog.now.Load())
		c.wakeAndUnlock()
		c.sys.deadLetter(c.slot.path, old, whyDropped)
		return true
	}
	c.mu.Unlock()
	if c.spec.Mailbox.Overflow == core.FaultOnOverflow {
		c.fail(fmt.Errorf("cannot queue message %d: %w", c.spec.Mailbox.Limit+1, errOverflow), msg)
	}
	return c.sys.deadLetter(c.slot.path, msg, whyFull)
}

func (c *cell) wakeAndUnlock() {
	wake := !c.running
	c.running = true
	c.mu.Unlock()
	if wake {
		c.sys.launch(c)
	}
}

// run handles messages until there is nothing to do.
func (c *cell) run() {
	for c.step() {
	}
}

// step handles one message; false means that there is nothing to do, and that the cell rests.
func (c *cell) step() bool {
	c.mu.Lock()
	msg, ok := c.next()
	if !ok {
		c.running = false
		c.exitIfDone()
		return false
	}
	c.current = msg
	c.mu.Unlock()
	c.seq.Add(1)
	c.handled(msg, c.receive(msg))
	return true
}

// turn is what a cell has to do next.
type turn uint8

const (
	nothing turn = iota
	birth
	control
	ordinary
	farewell
)

// turn tells whose turn it is: that of Started, of what supervision has to say, of an ordinary
// message, and of Stopping last. The lock is held.
func (c *cell) turn() turn {
	switch {
	case c.phase == closed:
	case c.unborn && c.phase == open:
		return birth
	case c.control.n > 0:
		return control
	case c.phase == open && c.inbox.n > 0:
		return ordinary
	case c.phase == closing && c.told && !c.saidStop:
		return farewell
	}
	return nothing
}

// next takes the message whose turn it is. The lock is held.
func (c *cell) next() (msg any, ok bool) {
	t := c.turn()
	c.own = t != ordinary
	switch t {
	case birth:
		c.unborn = false
		return Started{}, true
	case control:
		return c.control.pop(), true
	case ordinary:
		return c.inbox.pop(), true
	case farewell:
		c.saidStop = true
		return Stopping{}, true
	}
	return nil, false
}

// handled closes the books of one message.
func (c *cell) handled(msg any, err error) {
	c.seq.Add(1)
	c.mu.Lock()
	hung, sent := c.reported, !c.own
	c.current, c.reported = nil, false
	if _, ok := msg.(Stopping); ok {
		c.stopped = true
		err = onlyPanics(err)
	}
	_, started := msg.(Started)
	acknowledge := started && err == nil && !c.deferReady
	c.mu.Unlock()
	if c.sys.tap != nil {
		c.sys.tap.Handled(c, msg, sent, hung || err != nil && !errors.Is(err, ErrDone))
	}
	switch {
	case err == nil && acknowledge:
		c.Ready()
	case err == nil:
	case errors.Is(err, ErrDone):
		c.end(true)
	default:
		c.fail(err, msg)
	}
}

// onlyPanics drops plain errors of the last message: the child is going anyway.
func onlyPanics(err error) error {
	if err == nil {
		return nil
	}
	if k, _ := classify(err); k == Panic {
		return err
	}
	return nil
}

// fail reports a fault and takes no further message.
func (c *cell) fail(err error, msg any) {
	kind, stack := classify(err)
	c.failKind(kind, err, stack, describe(msg))
	if c.spec.Kind == core.Supervisor {
		c.letChildrenGo()
	}
}

// letChildrenGo is for a supervisor whose own code failed, or that is disowned itself: its
// children are fenced and stop in their own time, and nobody waits for what it can no longer
// know.
func (c *cell) letChildrenGo() {
	c.disownChildren()
	c.mu.Lock()
	c.holds = 0
	c.exitIfDone()
}

// failKind records the fault, begins the way out, and tells the owner unless the cell was on
// its way out already.
func (c *cell) failKind(kind FaultKind, err error, stack []byte, doing string) {
	f := c.fault(kind, err, stack, doing)
	c.sys.record(f, c.slot)
	if c.end(false) {
		c.owner.childFault(c, f)
	}
}

func (c *cell) fault(kind FaultKind, err error, stack []byte, doing string) Fault {
	now := c.sys.clock.Now()
	f := Fault{Kind: kind, Path: c.slot.path, Generation: c.gen, Message: doing, Err: err, Stack: stack, Since: now, At: now}
	if ns := c.busySince(); ns != 0 {
		f.Since = c.sys.shown(ns)
	}
	return f
}

// busySince is when the message that is being handled was first seen by the watchdog, at
// most a tick after it was taken; 0 when there is none, or it is too new.
func (c *cell) busySince() int64 {
	seq := c.seq.Load()
	if seq%2 == 0 || c.seenSeq.Load() != seq {
		return 0
	}
	return c.seenAt.Load()
}

func describe(msg any) string {
	if s, ok := msg.(jobName); ok {
		return "job " + string(s)
	}
	return fmt.Sprintf("%T", msg)
}

// stop lets the cell end: Stopping is its last message. Safe to call again.
func (c *cell) stop() {
	c.end(false)
	c.mu.Lock()
	if c.phase != closing || c.told {
		c.mu.Unlock()
		return
	}
	c.told = true
	c.wakeAndUnlock()
}

// end begins the way out: the context ends and what waits is drained. A cell that ends
// because its work is done stops at once; a failed one waits for its owner's stop, so that
// children stop in order. It returns false when the cell was on its way out already.
func (c *cell) end(normal bool) bool {
	c.mu.Lock()
	if c.phase != open {
		c.mu.Unlock()
		return false
	}
	c.phase, c.normal, c.told = closing, normal, normal
	if c.handler == nil && c.unborn {
		c.unborn, c.saidStop, c.stopped = false, true, true
	}
	dropped := c.inbox.drain()
	if c.spec.Kind == core.Worker {
		c.control = queue{}
	}
	cancel := c.cancel
	c.wakeAndUnlock()
	if cancel != nil {
		cancel()
	}
	c.deadLetters(dropped)
	return true
}

// endingNormally tells whether the cell is leaving because its work is done.
func (c *cell) endingNormally() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.phase != open && c.normal
}

func (c *cell) deadLetters(msgs []any) {
	for _, m := range msgs {
		c.sys.deadLetter(c.slot.path, m, whyEnded)
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
	c.holds = max(c.holds-1, 0)
	c.exitIfDone()
}

// exitIfDone is called with the lock held and releases it.
func (c *cell) exitIfDone() {
	idle := !c.running && len(c.jobs) == 0
	if idle && c.zombie && !c.returned {
		c.returned = true
		c.mu.Unlock()
		c.sys.countZombie(c, -1)
		c.sys.cameBack(c)
		c.owner.childReturned(c)
		return
	}
	if !idle || c.phase != closing || !c.stopped || c.control.n > 0 || c.holds > 0 {
		c.mu.Unlock()
		return
	}
	c.phase = closed
	normal := c.normal
	c.mu.Unlock()
	c.retire()
	c.sys.cameBack(c)
	c.owner.childExited(c, normal)
}

// abandon gives the cell up, whatever it is still doing: it is fenced, forgotten and gets no
// further message. The stack shows what it was doing. It returns false when the cell had
// exited in time.
func (c *cell) abandon(stack []byte) bool {
	c.mu.Lock()
	if c.phase == closed {
		c.mu.Unlock()
		return false
	}
	c.phase, c.zombie = closed, true
	dropped, cancel := c.inbox.drain(), c.cancel
	c.control = queue{}
	c.mu.Unlock()
	c.sys.abandoned.Add(1)
	c.sys.countZombie(c, 1)
	c.sys.leaveBehind(c, stack)
	c.retire()
	if cancel != nil {
		cancel()
	}
	c.deadLetters(dropped)
	c.disownChildren()
	c.mu.Lock()
	c.exitIfDone()
	return true
}

// disown fences the cell and lets it stop in its own time, because nobody is left to wait. A
// supervisor does not wait for its own children then, either.
func (c *cell) disown() {
	c.fenced.Store(true)
	c.sys.leaveBehind(c, nil)
	c.stop()
	c.slot.cell.CompareAndSwap(c, nil)
	if c.spec.Kind == core.Supervisor {
		c.letChildrenGo()
	}
}

func (c *cell) disownChildren() {
	c.mu.Lock()
	h := c.handler
	c.mu.Unlock()
	if a, ok := h.(interface{ disownChildren() }); ok {
		a.disownChildren()
	}
}

func (c *cell) retire() {
	c.fenced.Store(true)
	c.slot.cell.CompareAndSwap(c, nil)
	c.sys.untrack(c)
}

// abortBirth gives up a cell that was never started.
func (c *cell) abortBirth() {
	c.mu.Lock()
	c.phase = closed
	dropped := c.inbox.drain()
	c.mu.Unlock()
	c.fenced.Store(true)
	c.slot.cell.CompareAndSwap(c, nil)
	c.deadLetters(dropped)
}
