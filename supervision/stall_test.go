package supervision_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// stallingClock is a clock of a process that is stopped for a while: its time goes on, but no
// timer fires until it goes on as well.
type stallingClock struct {
	supervision.Clock
	until atomic.Int64
}

func (c *stallingClock) AfterFunc(d time.Duration, f func()) func() bool {
	return c.Clock.AfterFunc(d, func() {
		time.Sleep(time.Until(time.Unix(0, c.until.Load())))
		f()
	})
}

// TestAStalledProcessHangsNowhere holds that a process which was stopped for long, or was much too
// busy, does not take its own standstill for hangs of its children, and that it still sees
// those that really hang afterwards.
func TestAStalledProcessHangsNowhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := &stallingClock{Clock: supervision.RealClock()}
		s, err := supervision.New(supervision.Config{Clock: clock, Log: slog.New(slog.DiscardHandler), Rand: func() float64 { return 0 }})
		must(t, err)
		release := make(chan struct{})
		must(t, s.Start(sup("root", core.OneForOne, talker(&journal{}, "message"), talker(&journal{}, "job"), talker(&journal{}, "stuck"))))
		s.Send(s.Ref("root/job"), step(func(ctx supervision.Context) error {
			ctx.Go(supervision.Job{Name: "beats", BeatWithin: 5 * time.Second, Endless: true, Run: func(c context.Context, beat func()) (any, error) {
				for ctx.Clock().Sleep(c, 2*time.Second) == nil {
					if stalled := time.Until(time.Unix(0, clock.until.Load())); stalled > 0 {
						time.Sleep(stalled + time.Second)
					}
					beat()
				}
				return nil, nil
			}})
			return nil
		}))
		pass(10 * time.Second)
		s.Send(s.Ref("root/message"), step(func(supervision.Context) error { time.Sleep(time.Hour + 5*time.Second); return nil }))
		pass(2 * time.Second)
		clock.until.Store(time.Now().Add(time.Hour).UnixNano())
		pass(time.Hour + time.Minute)
		if f := s.Faults().Recent(); len(f) > 0 {
			t.Errorf("after the standstill: %v", f)
		}
		began := time.Now()
		s.Send(s.Ref("root/stuck"), step(func(supervision.Context) error { <-release; return nil }))
		pass(15 * time.Second)
		f := s.Faults().Recent()
		if len(f) != 1 || f[0].Kind != core.Hang || f[0].At.Sub(began) < 10*time.Second || f[0].At.Sub(f[0].Since) > 12*time.Second {
			t.Errorf("a real hang later: %+v", f)
		}
		if n := nodeAt(s, "root/job"); time.Since(n.LastBeat) > 5*time.Second || n.LastBeat.After(time.Now()) {
			t.Errorf("the last beat is shown %v ago", time.Since(n.LastBeat))
		}
		close(release)
		stopped(t, s)
	})
}
