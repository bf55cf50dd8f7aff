package hazards

import (
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Waits of the tests: something that must not happen is given patience, something that
// happens is waited for much longer.
const (
	patience = 100 * time.Millisecond
	limit    = 5 * time.Second
)

func newSystem(t *testing.T) *actor.ActorSystem {
	t.Helper()
	quiet := actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) })
	s := actor.NewActorSystem(quiet)
	t.Cleanup(s.Shutdown)
	return s
}

// journal is what the actors of a test saw.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

func (j *journal) count(line string) (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, l := range j.lines {
		if l == line {
			n++
		}
	}
	return n
}

func (j *journal) index(line string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, l := range j.lines {
		if l == line {
			return i
		}
	}
	return -1
}

func (j *journal) await(t *testing.T, line string, n int) {
	t.Helper()
	for deadline := time.Now().Add(limit); j.count(line) < n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%q was seen %d times in %v", line, j.count(line), j.lines)
		}
	}
}

// parent spawns children, and notes when it has stopped.
func parent(j *journal, spawn func(ctx actor.Context)) *actor.Props {
	return actor.PropsFromFunc(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *actor.Started:
			spawn(ctx)
			j.add("parent started")
		case *actor.Terminated:
			j.add("parent told")
		case *actor.Stopped:
			j.add("parent stopped")
		}
	})
}

// gone says in which words a hazard has disappeared.
func gone(t *testing.T, hazard, what string) {
	t.Helper()
	t.Errorf("%s is gone: %s; the pinned library changed, and DESIGN.md has to be read again", hazard, what)
}

// TestH3PanicInStoppingCancelsTheStop: the restart directive resurrects the actor.
func TestH3PanicInStoppingCancelsTheStop(t *testing.T) {
	s, j := newSystem(t), &journal{}
	pid := s.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *actor.Started:
			j.add("started")
		case *actor.Stopping:
			if j.count("stopping") == 0 {
				j.add("stopping")
				panic("in stopping")
			}
		case *actor.Stopped:
			j.add("stopped")
		}
	}))
	s.Root.Stop(pid)
	j.await(t, "started", 2)
	time.Sleep(patience)
	if j.count("stopped") > 0 {
		gone(t, "H3", "an actor that panics in Stopping stops all the same")
	}
	s.Root.Stop(pid)
	j.await(t, "stopped", 1)
}

// TestH4PanicInStoppedWedgesTheParent: neither watchers nor the parent are ever told.
func TestH4PanicInStoppedWedgesTheParent(t *testing.T) {
	s, j := newSystem(t), &journal{}
	pid := s.Root.Spawn(parent(j, func(ctx actor.Context) {
		ctx.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*actor.Stopped); ok {
				j.add("child stopped")
				panic("in stopped")
			}
		}))
	}))
	j.await(t, "parent started", 1)
	s.Root.Stop(pid)
	j.await(t, "child stopped", 1)
	time.Sleep(patience)
	if j.count("parent stopped") > 0 {
		gone(t, "H4", "the parent of an actor that panics in Stopped can stop")
	}
}

// TestH5PanicInTerminatedNeverStops: the parent goes back to restarting and never ends.
func TestH5PanicInTerminatedNeverStops(t *testing.T) {
	s, j := newSystem(t), &journal{}
	pid := s.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *actor.Started:
			ctx.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
			j.add("started")
		case *actor.Terminated:
			j.add("told")
			panic("in terminated")
		case *actor.Stopped:
			j.add("stopped")
		}
	}))
	j.await(t, "started", 1)
	s.Root.Stop(pid)
	j.await(t, "told", 1)
	time.Sleep(patience)
	if j.count("stopped") > 0 {
		gone(t, "H5", "a parent that panics when it is told of its child's end stops all the same")
	}
}

// TestH13HungChildHoldsItsParent: the stop of the parent waits for as long as the child hangs.
func TestH13HungChildHoldsItsParent(t *testing.T) {
	s, j, release := newSystem(t), &journal{}, make(chan struct{})
	var child *actor.PID
	pid := s.Root.Spawn(parent(j, func(ctx actor.Context) {
		child = ctx.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if ctx.Message() == "hang" {
				j.add("hangs")
				<-release
			}
		}))
	}))
	j.await(t, "parent started", 1)
	s.Root.Send(child, "hang")
	j.await(t, "hangs", 1)
	s.Root.Stop(pid)
	time.Sleep(patience)
	if j.count("parent stopped") > 0 {
		gone(t, "H13", "a parent stops although its child hangs")
	}
	close(release)
	j.await(t, "parent stopped", 1)
}

// TestH14ChildrenStopInParallel: the newest is signalled first, but nobody waits for it.
func TestH14ChildrenStopInParallel(t *testing.T) {
	s, j := newSystem(t), &journal{}
	pid := s.Root.Spawn(parent(j, func(ctx actor.Context) {
		for i, name := range []string{"a", "b", "c"} {
			ctx.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
				if _, ok := ctx.Message().(*actor.Stopping); ok {
					time.Sleep(time.Duration(i) * 50 * time.Millisecond)
					j.add(name)
				}
			}), name)
		}
	}))
	j.await(t, "parent started", 1)
	s.Root.Stop(pid)
	j.await(t, "parent stopped", 1)
	if j.index("c") < j.index("a") {
		gone(t, "H14", "children stop newest first, one at a time")
	}
}

// TestH15ZombieRemovesItsSuccessor: a hung actor that was replaced under its name takes its
// successor out of the registry when it ends.
func TestH15ZombieRemovesItsSuccessor(t *testing.T) {
	s, j, release := newSystem(t), &journal{}, make(chan struct{})
	props := func(id string) *actor.Props {
		return actor.PropsFromFunc(func(ctx actor.Context) {
			switch ctx.Message() {
			case "hang":
				j.add("hangs")
				<-release
			case "hello":
				j.add(id + " answers")
			}
			if _, ok := ctx.Message().(*actor.Stopped); ok {
				j.add(id + " stopped")
			}
		})
	}
	zombie, _ := s.Root.SpawnNamed(props("zombie"), "name")
	s.Root.Send(zombie, "hang")
	j.await(t, "hangs", 1)
	s.Root.Stop(zombie)
	s.ProcessRegistry.Remove(zombie)
	successor, err := s.Root.SpawnNamed(props("successor"), "name")
	if err != nil {
		t.Fatal(err)
	}
	s.Root.Send(successor, "hello")
	j.await(t, "successor answers", 1)
	close(release)
	j.await(t, "zombie stopped", 1)
	if _, there := s.ProcessRegistry.GetLocal("name"); there {
		gone(t, "H15", "a zombie leaves its successor in the registry")
	}
}

// TestH16GoexitWedgesTheActor: after a Goexit in Receive no message is handled any more.
func TestH16GoexitWedgesTheActor(t *testing.T) {
	s, j := newSystem(t), &journal{}
	pid := s.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch ctx.Message() {
		case "exit":
			j.add("exits")
			runtime.Goexit()
		case "hello":
			j.add("answers")
		}
	}))
	s.Root.Send(pid, "exit")
	j.await(t, "exits", 1)
	s.Root.Send(pid, "hello")
	time.Sleep(patience)
	if j.count("answers") > 0 {
		gone(t, "H16", "an actor survives a Goexit")
	}
}

// TestH17WaitingMessagesVanish: what is queued when an actor stops is no dead letter.
func TestH17WaitingMessagesVanish(t *testing.T) {
	s, j, release := newSystem(t), &journal{}, make(chan struct{})
	var dead atomic.Int32
	s.EventStream.Subscribe(func(event any) {
		if letter, ok := event.(*actor.DeadLetterEvent); ok && letter.Message == "late" {
			dead.Add(1)
		}
	})
	pid := s.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case string:
			if ctx.Message() == "late" {
				j.add("handled")
			} else {
				j.add("busy")
				<-release
			}
		case *actor.Stopped:
			j.add("stopped")
		}
	}))
	s.Root.Send(pid, "first")
	j.await(t, "busy", 1)
	s.Root.Send(pid, "late")
	s.Root.Stop(pid)
	close(release)
	j.await(t, "stopped", 1)
	time.Sleep(patience)
	if n := dead.Load() + int32(j.count("handled")); n > 0 {
		gone(t, "H17", fmt.Sprintf("a message that waits at the stop is accounted for %d times", n))
	}
}

// TestH18SendBeforeRegistrationPanics: between the registry's insert and the registration of
// the handlers, a message panics in its sender.
func TestH18SendBeforeRegistrationPanics(t *testing.T) {
	s := newSystem(t)
	mailbox := actor.Unbounded()()
	pid, _ := s.ProcessRegistry.Add(actor.NewActorProcess(mailbox), "early")
	panicked := func() (v any) {
		defer func() { v = recover() }()
		s.Root.Send(pid, "hello")
		return nil
	}()
	if panicked == nil {
		gone(t, "H18", "a message may come before the handlers are registered")
	}
}
