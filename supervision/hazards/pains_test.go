package hazards

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// restarter stands for the supervisor that a strategy tells what to do.
type restarter struct{ restarts chan time.Time }

func (restarter) Children() []*actor.PID               { return nil }
func (restarter) EscalateFailure(any, any)             {}
func (restarter) StopChildren(...*actor.PID)           {}
func (restarter) ResumeChildren(...*actor.PID)         {}
func (r restarter) RestartChildren(pids ...*actor.PID) { r.restarts <- time.Now() }

// TestP71_BackoffIsLinear: the strategy called exponential waits for the failures times the
// initial wait, with a noise of nanoseconds and without a cap.
func TestP71_BackoffIsLinear(t *testing.T) {
	s := newSystem(t)
	synctest.Test(t, func(t *testing.T) {
		const initial = 10 * time.Second
		strategy, stats := actor.NewExponentialBackoffStrategy(time.Hour, initial), actor.NewRestartStatistics()
		to := restarter{make(chan time.Time, 1)}
		for failures := 1; failures <= 30; failures++ {
			began := time.Now()
			strategy.HandleFailure(s, to, &actor.PID{}, stats, "reason", nil)
			wait := (<-to.restarts).Sub(began)
			if noise := wait - time.Duration(failures)*initial; noise < 0 || noise > time.Microsecond {
				gone(t, "P71", "the wait after "+wait.String()+" is not linear any more")
				return
			}
		}
	})
}

// TestP72_AStopIsOnlyAnEvent: an actor that fails too often is stopped, and only the event
// stream is told.
func TestP72_AStopIsOnlyAnEvent(t *testing.T) {
	s, j := newSystem(t), &journal{}
	s.EventStream.Subscribe(func(event any) {
		if e, ok := event.(*actor.SupervisorEvent); ok && e.Directive == actor.StopDirective {
			j.add("event")
		}
	})
	pid := s.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *actor.Started:
			j.add("started")
		case *actor.Stopped:
			j.add("stopped")
		case string:
			panic("always")
		}
	}))
	for range 11 {
		s.Root.Send(pid, "fail")
	}
	j.await(t, "stopped", 1)
	j.await(t, "event", 1)
	if j.count("started") != 11 {
		gone(t, "P72", "the default strategy does not allow ten restarts any more")
	}
}

// TestP73_EscalationAtTheTopEndsTheProcess: the guardian of a strategy that escalates panics
// where nothing recovers it. It is shown in a process of its own.
func TestP73_EscalationAtTheTopEndsTheProcess(t *testing.T) {
	const inside = "HAZARD_ESCALATE"
	if os.Getenv(inside) != "" {
		escalateAtTheTop()
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), inside+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "guardian cannot escalate failure") {
		gone(t, "P73", "a process survives the escalation past its guardian: "+string(out))
	}
}

func escalateAtTheTop() {
	s := actor.NewActorSystem()
	escalate := actor.NewOneForOneStrategy(10, time.Second, func(any) actor.Directive { return actor.EscalateDirective })
	pid := s.Root.WithGuardian(escalate).Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(string); ok {
			panic("always")
		}
	}))
	s.Root.Send(pid, "fail")
	time.Sleep(limit)
}

// TestP76_RetryLimitLeavesAHole: the limit of retries is kept, but then only the child stops
// and its parent goes on without it.
func TestP76_RetryLimitLeavesAHole(t *testing.T) {
	s, j := newSystem(t), &journal{}
	var child *actor.PID
	limited := actor.NewOneForOneStrategy(3, time.Minute, actor.DefaultDecider)
	pid := s.Root.Spawn(parent(j, func(ctx actor.Context) {
		child = ctx.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				j.add("child started")
			case *actor.Stopped:
				j.add("child stopped")
			case string:
				panic("always")
			}
		}))
	}).Configure(actor.WithSupervisor(limited)))
	j.await(t, "parent started", 1)
	for range 4 {
		s.Root.Send(child, "fail")
	}
	j.await(t, "child stopped", 1)
	time.Sleep(patience)
	if j.count("child started") != 4 {
		gone(t, "P76", "a limit of three retries allows another number of starts than four")
	}
	if j.count("parent stopped") > 0 || j.count("parent started") != 1 {
		gone(t, "P76", "a parent fails when its child has used up its retries")
	}
	s.Root.Stop(pid)
	j.await(t, "parent stopped", 1)
}

// TestP76_PanicInStoppingRevives is hazard H3 under the name of the pain.
func TestP76_PanicInStoppingRevives(t *testing.T) { TestH3PanicInStoppingCancelsTheStop(t) }

// TestP76_NoSupervisorIsNoNil: a parent without a strategy falls back to the default one. It
// used to panic in the parent.
func TestP76_NoSupervisorIsNoNil(t *testing.T) {
	s, j := newSystem(t), &journal{}
	var child *actor.PID
	pid := s.Root.Spawn(parent(j, func(ctx actor.Context) {
		child = ctx.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				j.add("child started")
			case string:
				panic("once")
			}
		}))
	}))
	j.await(t, "parent started", 1)
	s.Root.Send(child, "fail")
	j.await(t, "child started", 2)
	if j.count("parent started") != 1 {
		t.Error("the parent failed of its child's failure: the defect of old is back")
	}
	s.Root.Stop(pid)
	j.await(t, "parent stopped", 1)
}

// TestP77_TheMessageIsLostUnseen: the message that caused a panic is gone, the one behind it is
// handled by the new life, and nothing is a dead letter.
func TestP77_TheMessageIsLostUnseen(t *testing.T) {
	s, j := newSystem(t), &journal{}
	s.EventStream.Subscribe(func(event any) {
		if _, ok := event.(*actor.DeadLetterEvent); ok {
			j.add("dead letter")
		}
	})
	pid := s.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			j.add("started")
		case string:
			j.add(m)
			if m == "poison" {
				panic(m)
			}
		}
	}))
	j.await(t, "started", 1)
	s.Root.Send(pid, "poison")
	s.Root.Send(pid, "next")
	j.await(t, "next", 1)
	if j.count("poison") != 1 || j.count("dead letter") != 0 {
		gone(t, "P77", "the message that caused a panic is given out again, or is a dead letter")
	}
}

// TestP77_RestartStatisticsGrow: failures of long ago are kept until a reset.
func TestP77_RestartStatisticsGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stats := actor.NewRestartStatistics()
		for range 1000 {
			stats.Fail()
			time.Sleep(time.Hour)
		}
		if stats.NumberOfFailures(time.Minute) != 0 || stats.FailureCount() != 1000 {
			gone(t, "P77", "failures outside the window are forgotten")
		}
	})
}
