package scheduler

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

// stage runs one scheduler by itself: it is the actor's context, in virtual time when the test runs in a bubble.
type stage struct {
	base
	handler  *scheduler
	messages chan any
	ctx      context.Context
	errs     chan error
}

// base gives the methods of a context that the scheduler never calls; they would panic.
type base struct{ supervision.Context }

// stageLimit is more messages than any test leaves unread.
const stageLimit = 1 << 16

// play starts a scheduler on the world; it ends with the test.
func play(t testing.TB, w *world, change ...func(*Deps)) *stage {
	deps := Deps{Source: w, Client: client{world: w}}
	for _, f := range change {
		f(&deps)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &stage{handler: newScheduler(deps), messages: make(chan any, stageLimit), ctx: ctx, errs: make(chan error, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.loop()
	}()
	t.Cleanup(func() { cancel(); <-done })
	s.messages <- supervision.Started{}
	return s
}

func (s *stage) loop() {
	for {
		select {
		case <-s.ctx.Done():
			return
		case m := <-s.messages:
			if err := s.handler.Receive(s, m); err != nil && s.ctx.Err() == nil {
				s.errs <- err
				return
			}
		}
	}
}

func (s *stage) Context() context.Context      { return s.ctx }
func (s *stage) Clock() supervision.Clock      { return supervision.RealClock() }
func (s *stage) Log() *slog.Logger             { return slog.New(slog.DiscardHandler) }
func (s *stage) Self() supervision.Ref         { return supervision.Ref{} }
func (s *stage) Send(_ supervision.Ref, m any) { s.messages <- m }

func (s *stage) After(d time.Duration, m any) func() {
	timer := time.AfterFunc(d, func() { s.messages <- m })
	return func() { timer.Stop() }
}

func (s *stage) Go(job supervision.Job) {
	go func() {
		value, err := job.Run(s.ctx, func() {})
		select {
		case s.messages <- supervision.JobDone{Name: job.Name, Value: value, Err: err}:
		case <-s.ctx.Done():
		}
	}()
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newWorld()) })
}

// pass lets virtual time go by and everything come to rest.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
