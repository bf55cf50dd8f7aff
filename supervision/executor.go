package supervision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nodeactor/nodeactor/supervision/core"
)

// errExecutorClock is returned when a system has an executor and no clock of its own.
var errExecutorClock = errors.New("an executor needs a clock of its own")

// Executor runs the work of a System in place of goroutines: one piece at a time, in an
// order of its own choice. It is how a test harness makes a run repeatable.
type Executor interface {
	// Run takes a piece of work over. It calls the work's Step later, never at once.
	Run(Work)
	// Watch is Clock.AfterFunc for the watchdog, whose timers do not keep a system busy.
	Watch(d time.Duration, f func()) (stop func() bool)
	// Wait does other work until the condition holds; false means that it never will.
	Wait(until func() bool) bool
}

// Tap sees what happens to messages and jobs, and may interfere: it is how a test harness
// injects faults and keeps its books. It is called by whoever handles, sends or starts.
type Tap interface {
	// Deliver is called under the guard before a handler gets msg; taken means that the
	// handler does not get it. What Deliver does counts as done by the handler.
	Deliver(ctx Context, msg any) (taken bool, err error)
	// Handled is called when the handling of msg has ended; sent tells messages that somebody
	// sent from those which supervision or the child itself queued, faulted that the handling
	// was or had been a fault.
	Handled(ctx Context, msg any, sent, faulted bool)
	// Sent is called for each message that somebody sends to a child.
	Sent(to string, msg any)
	// DeadLetter is called for each message that nobody took.
	DeadLetter(to string, msg any, why string)
	// Job returns the job to start in place of j.
	Job(ctx Context, j Job) Job
}

// Work is one thing an Executor has to run: the mailbox of a generation, a job, or a goroutine
// of a Group.
type Work struct {
	c    *cell
	job  *jobRun
	call *call
	// lost is the message whose handler ended its goroutine.
	lost any
}

// call is the function of a Group.
type call struct {
	name string
	run  func()
}

// executorKey finds the executor in the contexts of a system.
type executorKey struct{}

// WithExecutor makes the groups of a context run under an executor. The contexts of a system
// that has one do so already.
func WithExecutor(ctx context.Context, e Executor) context.Context {
	return context.WithValue(ctx, executorKey{}, e)
}

// executorOf returns the executor of the system that a context comes from, or nil.
func executorOf(ctx context.Context) Executor {
	e, _ := ctx.Value(executorKey{}).(Executor)
	return e
}

// jobRun is a job that is about to run.
type jobRun struct {
	Job
	ctx    context.Context
	finish func()
	record *jobRecord
}

// Path is the child it is of, or the name of the group and its goroutine.
func (w Work) Path() string {
	if w.call != nil {
		return w.call.name
	}
	return w.c.slot.path
}

// Generation is the child's generation it is of, 0 for a group.
func (w Work) Generation() uint64 {
	if w.call != nil {
		return 0
	}
	return w.c.gen
}

// Job tells which job it is, with the job's context; false for the mailbox.
func (w Work) Job() (Job, context.Context, bool) {
	if w.job == nil {
		return Job{}, nil, false
	}
	return w.job.Job, w.job.ctx, true
}

// Step handles one message, or runs the whole job; it returns false when there is nothing
// more to do. It may block if its caller lets the executor go on elsewhere meanwhile.
func (w Work) Step() (more bool) {
	switch {
	case w.call != nil:
		w.call.run()
		return false
	case w.job != nil:
		w.c.runJob(w.job)
		return false
	case w.lost != nil:
		// What goes on is the mailbox: the message is lost once.
		w.c.handled(w.lost, errGoexit)
		if w.c.goesOn() {
			w.c.sys.launch(w.c)
		}
		return false
	case !w.c.step():
		return false
	}
	return w.c.goesOn()
}

// goesOn tells whether a cell has more to do; otherwise it rests from now on.
func (c *cell) goesOn() bool {
	c.mu.Lock()
	if c.turn() != nothing {
		c.mu.Unlock()
		return true
	}
	c.running = false
	c.exitIfDone()
	return false
}

// launch lets a cell handle its messages.
func (s *System) launch(c *cell) {
	if s.exec == nil {
		go c.work()
		return
	}
	s.exec.Run(Work{c: c})
}

// takeOver goes on with a cell whose handler has ended its goroutine.
func (s *System) takeOver(c *cell, msg any) {
	if s.exec == nil {
		go c.resume(msg)
		return
	}
	s.exec.Run(Work{c: c, lost: msg})
}

// launchJob runs a job.
func (s *System) launchJob(c *cell, j *jobRun) {
	if s.exec == nil {
		go c.runJob(j)
		return
	}
	s.exec.Run(Work{c: c, job: j})
}

// await returns when ctx has ended.
func (s *System) await(ctx context.Context) {
	if s.exec == nil {
		<-ctx.Done()
		return
	}
	s.exec.Wait(func() bool { return ctx.Err() != nil })
}

// waitStarted returns when the tree has started or ended.
func (s *System) waitStarted() {
	if s.exec != nil {
		s.exec.Wait(func() bool { return over(s.started) || over(s.ended) })
		return
	}
	select {
	case <-s.started:
	case <-s.ended:
	}
}

// waitEnded returns true when the tree has ended, false when ctx ended first.
func (s *System) waitEnded(ctx context.Context) bool {
	if s.exec != nil {
		s.exec.Wait(func() bool { return over(s.ended) || ctx.Err() != nil })
		return over(s.ended)
	}
	select {
	case <-s.ended:
		return true
	case <-ctx.Done():
		return false
	}
}

// over tells whether a channel was closed.
func over(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// sent tells the tap of a message.
func (s *System) sent(to string, msg any) {
	if s.tap != nil {
		s.tap.Sent(to, msg)
	}
}

// Describe shows which job it was in traces.
func (d JobDone) Describe() string { return d.Name }

var eventNames = [...]string{
	core.GroupStart: "start", core.GroupStop: "stop", core.ChildReady: "ready", core.ChildFault: "fault", core.ChildExited: "exited",
	core.StopElapsed: "stop elapsed", core.BackoffElapsed: "back-off elapsed", core.ChildRestart: "restart",
	core.ZombieReturned: "zombie returned", core.GroupFault: "overrun",
}

// Describe shows the event in traces.
func (e groupEvent) Describe() string {
	name := fmt.Sprint(uint8(e.Kind))
	if int(e.Kind) < len(eventNames) {
		name = eventNames[e.Kind]
	}
	return fmt.Sprintf("%s of child %d#%d", name, e.Child, e.Gen)
}
