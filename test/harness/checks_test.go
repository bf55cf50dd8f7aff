package harness_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
	"github.com/nodeactor/nodeactor/test/harness"
)

// spell is a time in which a child starts or stops.
type spell struct {
	what, child string
	from, to    time.Time
}

// diary notes the spells of children.
type diary struct {
	k   *harness.Kit
	all []spell
}

func (d *diary) take() []spell {
	all := d.all
	d.all = nil
	return all
}

// slowpoke takes its time to start and to stop.
func (d *diary) slowpoke(id string) supervision.Spec {
	return harness.Actor(id, func(ctx supervision.Context, msg any) error {
		what := ""
		switch m := msg.(type) {
		case supervision.Started:
			what = "start"
		case supervision.Stopping:
			what = "stop"
		case error:
			return m
		default:
			return nil
		}
		begin := ctx.Clock().Now()
		_ = ctx.Clock().Sleep(context.Background(), time.Duration(1+d.k.Rand().IntN(4000))*time.Millisecond)
		d.all = append(d.all, spell{what, id, begin, ctx.Clock().Now()})
		return nil
	})
}

// expect demands these spells, each begun after the one before has ended.
func (d *diary) expect(when string, want ...string) {
	var got []string
	all := d.take()
	for i, s := range all {
		got = append(got, s.what+" "+s.child)
		if i > 0 && s.from.Before(all[i-1].to) {
			d.k.Fatalf("%s: %s of %s overlaps %s of %s", when, s.what, s.child, all[i-1].what, all[i-1].child)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		d.k.Fatalf("%s: got %v, want %v", when, got, want)
	}
}

// TestCheck04_Order holds, with random durations, that children start oldest first and stop
// newest first, one at a time and each after the one before has finished: at the start, at the
// stop, and when a strategy restarts them.
func TestCheck04_Order(t *testing.T) {
	ids := []string{"a", "b", "c", "d", "e"}
	for _, strategy := range []core.Strategy{harness.OneForOne, harness.OneForAll, harness.RestForOne} {
		t.Run(strategy.String(), func(t *testing.T) {
			harness.Sim(t, func(k *harness.Kit) {
				d := &diary{k: k}
				var children []supervision.Spec
				var up, down []string
				for i := range ids {
					children = append(children, d.slowpoke(ids[i]))
					up, down = append(up, "start "+ids[i]), append(down, "stop "+ids[len(ids)-1-i])
				}
				k.Tree(harness.Group("root", strategy, children...))
				d.expect("at the start", up...)
				failing := k.Rand().IntN(len(ids))
				k.Expect("root/"+ids[failing], supervision.ErrorReturn)
				k.Send("root/"+ids[failing], harness.ErrInjected)
				k.Advance(2 * time.Minute)
				d.expect("at the restart", restarted(strategy, ids, failing)...)
				k.Stop()
				d.expect("at the stop", down...)
			}, harness.Seeds(checkSeeds), harness.Once())
		})
	}
}

func restarted(strategy core.Strategy, ids []string, failing int) (want []string) {
	first, last := failing, failing
	switch strategy {
	case core.OneForAll:
		first, last = 0, len(ids)-1
	case core.RestForOne:
		last = len(ids) - 1
	}
	for i := last; i >= first; i-- {
		want = append(want, "stop "+ids[i])
	}
	for i := first; i <= last; i++ {
		want = append(want, "start "+ids[i])
	}
	return want
}

// TestCheck06_Drain holds that every message which is sent is exactly one of handled, faulted
// and dead-lettered, in storms of faults of all kinds. It counts each by its identity.
func TestCheck06_Drain(t *testing.T) {
	var fates [3]int
	harness.Sim(t, func(k *harness.Kit) {
		fate := map[letter]harness.EventKind{}
		k.Observe(func(e harness.Event) {
			m, ok := e.Msg.(letter)
			if !ok || e.Kind == harness.Delivered {
				return
			}
			if before, twice := fate[m]; twice {
				k.Errorf("letter %d was %v and then %v", m.id, before, e.Kind)
			}
			fate[m] = e.Kind
			fates[e.Kind-harness.Handled]++
		})
		hangs := storm(k)
		k.Stop()
		for _, h := range hangs {
			h.Release()
		}
		k.Settle()
		if a := k.Account(); a.Waiting != 0 || a.Sent != len(fate) || a.Sent != a.Handled+a.Faulted+a.DeadLettered {
			k.Errorf("the books do not close: %+v, %d letters have ended", a, len(fate))
		}
	}, harness.Seeds(checkSeeds), harness.Once())
	t.Logf("%d letters were handled, %d faulted, %d dead-lettered", fates[0], fates[1], fates[2])
	for i, n := range fates {
		if n < checkSeeds/10 {
			t.Errorf("only %d letters had fate %d: the storm is too mild", n, i)
		}
	}
}

// childVar marks the process in which TestCheck07_Determinism runs itself.
const childVar = "HARNESS_TEST_CHILD"

// TestCheck07_Determinism runs each seed twice and demands equal traces, with two values of
// GOMAXPROCS, and again in another process.
func TestCheck07_Determinism(t *testing.T) {
	run := func(procs int, opts ...harness.Option) uint64 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		return harness.Sim(t, func(k *harness.Kit) { storm(k) }, append(opts, harness.Seeds(checkSeeds))...)
	}
	if os.Getenv(childVar) != "" {
		fmt.Printf("hash %x\n", run(2, harness.Once()))
		return
	}
	want := run(1)
	if got := run(4); got != want {
		t.Errorf("with 1 and 4 processors the hashes of all traces are %x and %x", want, got)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestCheck07_Determinism$")
	cmd.Env = append(os.Environ(), childVar+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), fmt.Sprintf("hash %x\n", want)) {
		t.Errorf("another process: %v, want %x\n%s", err, want, out)
	}
}
