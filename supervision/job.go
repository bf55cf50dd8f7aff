package supervision

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"sync/atomic"
	"time"
)

// errJobSpec is returned when a job has no bound and does not say that it is endless.
var errJobSpec = errors.New("a job needs a Deadline, BeatWithin or Endless")

// jobName stands for the message of a fault in a job.
type jobName string

// jobRecord is what the watchdog knows of a running job; times are those of System.watched, 0
// for no limit.
type jobRecord struct {
	name     string
	overdue  int64
	within   time.Duration
	lastBeat atomic.Int64
	reported bool
}

// Go implements Context.
func (c *cell) Go(j Job) {
	if c.sys.tap != nil {
		j = c.sys.tap.Job(c, j)
	}
	now := c.sys.watched()
	r := &jobRecord{name: j.Name, within: j.BeatWithin}
	r.lastBeat.Store(now)
	if j.Deadline <= 0 && j.BeatWithin <= 0 && !j.Endless || j.Run == nil {
		c.postOwn(JobDone{Name: j.Name, Err: fmt.Errorf("cannot run job %s: %w", j.Name, errJobSpec)})
		return
	}
	ctx, cancel := context.WithCancelCause(c.labels(c.Context()))
	stopTimer := func() bool { return true }
	if j.Deadline > 0 {
		r.overdue = now + int64(j.Deadline+c.spec.StopTimeout)
		c.sys.window(c.spec.StopTimeout)
		stopTimer = c.sys.clock.AfterFunc(j.Deadline, func() { cancel(context.DeadlineExceeded) })
	}
	if j.BeatWithin > 0 {
		c.sys.window(j.BeatWithin)
	}
	c.mu.Lock()
	if c.phase != open {
		c.mu.Unlock()
		stopTimer()
		cancel(nil)
		return
	}
	c.jobs = append(c.jobs, r)
	c.watchIfNeeded()
	c.mu.Unlock()
	c.sys.launchJob(c, &jobRun{Job: j, ctx: ctx, finish: func() { stopTimer(); cancel(nil) }, record: r})
}

func (c *cell) runJob(j *jobRun) {
	done := JobDone{Name: j.Name, Err: errGoexit}
	var failed error = errGoexit
	defer func() {
		if failed == errGoexit {
			if v := recover(); v != nil {
				failed = &PanicError{Value: v, Stack: debug.Stack()}
			}
			panics.Add(1)
		}
		j.finish()
		c.jobEnded(j.record, done, failed)
	}()
	pprof.SetGoroutineLabels(j.ctx)
	done.Value, done.Err = j.Run(j.ctx, func() { j.record.lastBeat.Store(c.sys.watched()) })
	if done.Err != nil && errors.Is(context.Cause(j.ctx), context.DeadlineExceeded) {
		done.Err = fmt.Errorf("%w (limit %s): %w", context.DeadlineExceeded, j.Deadline, done.Err)
	}
	failed = bindError(done.Err)
}

func (c *cell) jobEnded(r *jobRecord, done JobDone, failed error) {
	c.mu.Lock()
	if i := slices.Index(c.jobs, r); i >= 0 {
		c.jobs = slices.Delete(c.jobs, i, i+1)
	}
	c.watchIfNeeded()
	live := c.phase == open
	if live && failed == nil {
		c.control.push(done, c.sys.dog.now.Load())
		c.wakeAndUnlock()
		return
	}
	c.mu.Unlock()
	if failed != nil {
		c.fail(failed, jobName(r.name))
	}
	c.mu.Lock()
	c.exitIfDone()
}

// bindError returns the error of a listener that cannot get its address: that is a fault
// whether or not the handler would have passed it on.
func bindError(err error) error {
	var b *BindError
	if errors.As(err, &b) {
		return err
	}
	return nil
}
