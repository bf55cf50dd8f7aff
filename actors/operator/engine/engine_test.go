package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
	"github.com/nodeactor/nodeactor/supervision/core"
	"github.com/nodeactor/nodeactor/test/harness"
)

var keyA, keyB, keyC = Key{Name: "a"}, Key{Name: "b"}, Key{Name: "c"}

const pathA = "root/test/manifests/a"

// seeds are enough for tests whose story has few ways to go.
var seeds = harness.Seeds(20)

// run starts an engine over a new world that was prepared.
func run(k *harness.Kit, t Timings, l Limits, prepare func(*world)) (*world, *Engine) {
	w := newWorld(k.Clock())
	prepare(w)
	e := New("test", w, w.hooks(), t, l)
	inTree(k, e)
	return w, e
}

// at is when the passes of a manifest began, after a time.
func (w *world) after(key Key, since time.Time) (waits []time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.began[key] {
		if !t.Before(since) {
			waits = append(waits, t.Sub(since))
		}
	}
	return waits
}

// TestWhatAPassAsksFor is a table of results, and of when the next pass begins behind one that begins at 0 and takes no time but what the
// harness gives a job.
func TestWhatAPassAsksFor(t *testing.T) {
	const slack = 20 * time.Millisecond
	for _, c := range []struct {
		name     string
		result   Result
		from, to time.Duration
		outcome  Outcome
		err      error
	}{
		{"none", Result{}, 4 * time.Minute, 6*time.Minute + slack, Succeeded, nil},
		{"soon", Result{After: time.Second}, time.Second, time.Second + slack, Succeeded, nil},
		{"late", Result{After: time.Hour}, 4 * time.Minute, 6*time.Minute + slack, Succeeded, nil},
		{"past", Result{After: -time.Second}, 800 * time.Millisecond, 1200*time.Millisecond + slack, Failed, ErrRequeuePast},
		{"failed", Result{Outcome: Failed, Err: errDown}, 800 * time.Millisecond, 1200*time.Millisecond + slack, Failed, errDown},
		{"failed, own wait", Result{Outcome: Failed, Err: errDown, After: 7 * time.Second}, 7 * time.Second, 7*time.Second + slack, Failed, errDown},
		{"conflict", Result{Outcome: Conflicted}, 50*time.Millisecond - slack/2, 50*time.Millisecond + slack, Conflicted, nil},
		{"interrupted", Result{Outcome: Interrupted}, 0, slack, Interrupted, nil},
		{"alone without an answer", Result{Outcome: Unanswered, Err: errDown}, 800 * time.Millisecond, 1200*time.Millisecond + slack, Failed, errDown},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			harness.Sim(t, func(k *harness.Kit) {
				w, _ := run(k, DefaultTimings, Limits{}, func(w *world) {
					w.put(keyA)
					w.act = func(context.Context, Pass) Result {
						if w.passes(keyA) > 1 {
							return Result{After: time.Hour}
						}
						return c.result
					}
				})
				k.Await(10*time.Minute, func() bool { return w.passes(keyA) == 2 })
				if wait := w.began[keyA][1].Sub(w.began[keyA][0]); wait < c.from || wait > c.to {
					k.Errorf("the next pass began %v after the first", wait)
				}
				r := w.reports[0]
				if r.Result.Outcome != c.outcome || !errors.Is(r.Result.Err, c.err) || (r.Failures == 1) != (c.outcome == Failed) {
					k.Errorf("reported %+v", r)
				}
			}, seeds)
		})
	}
}

// TestAManifestAtRestHasNoActor holds what rest costs, and that the resync goes on without one.
func TestAManifestAtRestHasNoActor(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		w, e := run(k, DefaultTimings, Limits{}, func(w *world) {
			for _, key := range manifests(20) {
				w.put(key)
			}
		})
		for range 5 {
			k.Advance(DefaultTimings.Linger + time.Second)
			if s := e.Stats(); s.Manifests != 20 || s.Actors != 0 {
				k.Errorf("at rest there is %+v", s)
			}
			k.Advance(6 * time.Minute)
		}
		k.Advance(6 * time.Minute)
		for _, key := range manifests(20) {
			if n := w.passes(key); n < 6 || n > 10 {
				k.Errorf("%d passes of %v in 36 minutes", n, key)
			}
		}
	}, seeds)
}

// TestF049_AMissedWakeIsFoundByTheFallback loses the wake of a change without a word.
func TestF049_AMissedWakeIsFoundByTheFallback(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		w, _ := run(k, DefaultTimings, Limits{}, func(w *world) { w.put(keyA); w.put(keyB) })
		k.Advance(10 * time.Second)
		w.change(keyA, true, false)
		w.change(keyC, true, false)
		w.change(keyB, false, false)
		since := k.Clock().Now()
		k.Advance(DefaultTimings.Fallback + lookEvery + time.Second)
		if len(w.after(keyA, since)) != 1 || len(w.after(keyC, since)) != 1 || len(w.after(keyB, since)) != 0 {
			k.Errorf("passes after %v, %v and %v", w.after(keyA, since), w.after(keyC, since), w.after(keyB, since))
		}
	}, seeds)
}

// TestF049_ABurstOfAHundredIsTwoPasses is the window as a whole engine keeps it.
func TestF049_ABurstOfAHundredIsTwoPasses(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		w, _ := run(k, quiet(), Limits{}, func(w *world) { w.put(keyA) })
		k.Advance(10 * time.Second)
		since := k.Clock().Now()
		for range 100 {
			w.put(keyA)
			k.Advance(300 * time.Microsecond)
		}
		k.Advance(time.Minute)
		waits := w.after(keyA, since)
		if len(waits) != 2 || waits[0] > 15*time.Millisecond || waits[1] < 50*time.Millisecond {
			k.Errorf("passes after %v", waits)
		}
	}, seeds)
}

// TestF051_ManyRequeuesLeaveOnePass asks for another pass again and again.
func TestF051_ManyRequeuesLeaveOnePass(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		w, _ := run(k, quiet(), Limits{}, func(w *world) {
			w.put(keyA)
			w.act = func(context.Context, Pass) Result { return Result{After: 30 * time.Second} }
		})
		for range 20 {
			k.Advance(time.Second)
			w.put(keyA)
		}
		k.Advance(time.Second)
		since := k.Clock().Now()
		w.do(nil)
		k.Advance(10 * time.Minute)
		if waits := w.after(keyA, since); len(waits) != 1 {
			k.Errorf("passes after %v", waits)
		}
	}, seeds)
}

// TestCancelEndsAPassAndCountsForNothing calls passes off.
func TestCancelEndsAPassAndCountsForNothing(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		reason := errors.New("not ours any more")
		var causes []error
		w, e := run(k, quiet(), Limits{}, func(w *world) {
			w.put(keyA)
			w.act = func(ctx context.Context, _ Pass) Result {
				err := w.clock.Sleep(ctx, 10*time.Second)
				causes = append(causes, context.Cause(ctx))
				if err != nil {
					return Result{Outcome: Failed, Err: err}
				}
				return Result{}
			}
		})
		e.Cancel(keyB, reason)
		for range 3 {
			k.Advance(time.Second)
			e.Cancel(keyA, reason)
		}
		k.Advance(time.Minute)
		if len(causes) != 4 || causes[0] != reason || causes[3] != nil {
			k.Errorf("the passes ended because of %v", causes)
		}
		for i, r := range w.reports {
			if want := []Outcome{Interrupted, Interrupted, Interrupted, Succeeded}[i]; r.Result.Outcome != want || r.Failures != 0 {
				k.Errorf("pass %d came to %+v", i, r)
			}
		}
	}, seeds)
}

// TestP09_APassThatHangsIsReplacedAndKeepsItsLease has a pass that is deaf to everything. Its actor is given up and another takes its place,
// which may not begin before the deaf one has returned; then it does at once. Nobody else waits.
func TestP09_APassThatHangsIsReplacedAndKeepsItsLease(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		k.Expect(pathA, supervision.Hang)
		k.ExpectAbandoned(1)
		k.AllowDeadLetters()
		release := false
		w, e := run(k, quiet(), Limits{Concurrency: 2, Timeout: 20 * time.Second}, func(w *world) {
			w.held = map[Key]bool{keyA: true, keyB: true}
			w.put(keyA)
			w.put(keyB)
			w.act = func(_ context.Context, p Pass) Result {
				if p.Key == keyA && !release {
					_ = k.WaitFor(context.Background(), func() bool { return release })
				}
				return Result{}
			}
		})
		k.Advance(10 * time.Minute)
		if w.passes(keyA) != 1 || w.dones != 1 || !slices.ContainsFunc(w.faults, backsOff) {
			k.Errorf("%d passes, %d done, told of %v", w.passes(keyA), w.dones, w.faults)
		}
		for range 3 {
			since := k.Clock().Now()
			w.put(keyB)
			k.Advance(time.Second)
			if len(w.after(keyB, since)) != 1 {
				k.Errorf("a healthy manifest has passes after %v", w.after(keyB, since))
			}
		}
		release = true
		k.Advance(time.Second)
		if w.passes(keyA) != 2 {
			k.Errorf("%d passes after the deaf one returned", w.passes(keyA))
		}
		k.Advance(2 * faultKept)
		w.settled(k, e)
	}, seeds)
}

// TestManyPassesHang has more manifests whose passes never return than children may be abandoned in a tree. They hang up nobody but themselves, say
// so after two passes each, and one that is changed has another pass.
func TestManyPassesHang(t *testing.T) {
	const many = 20
	harness.Sim(t, func(k *harness.Kit) {
		k.AllowAbandoned()
		k.AllowDeadLetters()
		release := false
		w, _ := run(k, quiet(), Limits{Timeout: 20 * time.Second}, func(w *world) {
			w.put(keyB)
			for i := range many {
				key := Key{Name: fmt.Sprint("deaf-", i)}
				k.Allow("root/test/manifests/"+key.Name, supervision.Hang)
				w.put(key)
			}
			w.act = func(_ context.Context, p Pass) Result {
				if p.Key != keyB && !release {
					_ = k.WaitFor(context.Background(), func() bool { return release })
				}
				return Result{}
			}
		})
		k.Advance(10 * time.Minute)
		first := Key{Name: "deaf-0"}
		if len(w.stuck) != many || w.stuck[first] != maxHanging || w.passes(first) != maxHanging {
			k.Errorf("%d are told to be stuck, one with %d passes of %d", len(w.stuck), w.stuck[first], w.passes(first))
		}
		since := k.Clock().Now()
		w.put(keyB)
		w.put(first)
		k.Advance(time.Second)
		if len(w.after(keyB, since)) != 1 {
			k.Errorf("a healthy manifest has passes after %v", w.after(keyB, since))
		}
		k.Advance(time.Minute)
		if w.passes(first) != maxHanging+1 {
			k.Errorf("%d passes of one that was changed", w.passes(first))
		}
		release = true
		k.Advance(time.Minute)
	}, harness.Seeds(20))
}

func backsOff(c supervision.Change) bool { return c.To == core.BackingOff && c.Fault != nil }

// TestRecallGoesOnFromBefore begins with a past: three failures, the next try in a minute. A change brings it earlier.
func TestRecallGoesOnFromBefore(t *testing.T) {
	for _, changed := range []bool{false, true} {
		harness.Sim(t, func(k *harness.Kit) {
			w := newWorld(k.Clock())
			w.put(keyA)
			next := k.Clock().Now().Add(time.Minute)
			h := w.hooks()
			h.Recall = func(Key) (int, time.Time) { return 3, next }
			var before []int
			w.do(func(_ context.Context, p Pass) Result {
				before = append(before, p.Failures)
				return Result{Outcome: Failed, Err: errDown}
			})
			inTree(k, New("test", w, h, quiet(), Limits{}))
			k.Advance(10 * time.Second)
			if changed {
				w.put(keyA)
				next = next.Add(-50 * time.Second)
			}
			k.Await(2*time.Minute, func() bool { return w.passes(keyA) == 2 })
			first, second := w.began[keyA][0], w.began[keyA][1]
			if wait := first.Sub(next); wait < 0 || wait > 20*time.Millisecond {
				k.Errorf("the first try began %v after it was due", wait)
			}
			if wait := second.Sub(first); wait < 6*time.Second || wait > 10*time.Second || fmt.Sprint(before) != "[3 4]" {
				k.Errorf("the second try began %v after the first, failures before were %v", wait, before)
			}
		}, seeds)
	}
}

// TestAPauseIsWaitedOutAndHoldsUpNobody pauses one of two manifests of which one at a time may run.
func TestAPauseIsWaitedOutAndHoldsUpNobody(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		w := newWorld(k.Clock())
		until := k.Clock().Now().Add(time.Minute)
		h := w.hooks()
		h.Paused = func(key Key) (Pause, bool) {
			return Pause{Name: "Pause for the test", Until: until}, key == keyA && k.Clock().Now().Before(until)
		}
		w.put(keyA)
		w.put(keyB)
		e := New("test", w, h, quiet(), Limits{Concurrency: 1})
		inTree(k, e)
		k.Advance(time.Second)
		if n, _ := k.System().Look(pathA); len(n.JobNames) != 1 || n.JobNames[0] != "Pause for the test" || w.passes(keyA) != 0 || w.passes(keyB) != 1 {
			k.Errorf("%d and %d passes, the one that pauses does %v", w.passes(keyA), w.passes(keyB), n.JobNames)
		}
		k.Advance(2 * time.Minute)
		if waits := w.after(keyA, until); len(waits) != 1 || waits[0] > 20*time.Millisecond {
			k.Errorf("passes after the pause: %v", waits)
		}
		w.settled(k, e)
	}, seeds)
}

// TestAnActorThatIsDownLosesItsTurn crashes an actor that waits for the limit: whoever is behind it goes on when there is room.
func TestAnActorThatIsDownLosesItsTurn(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		k.Expect(pathA, supervision.Panic)
		k.AllowDeadLetters()
		w, _ := run(k, quiet(), Limits{Concurrency: 1}, func(w *world) {
			w.put(keyA)
			w.act = func(ctx context.Context, p Pass) Result {
				if p.Key == keyB {
					_ = w.clock.Sleep(ctx, 300*time.Millisecond)
				}
				return Result{}
			}
		})
		k.Advance(100 * time.Millisecond)
		w.put(keyB)
		k.Await(time.Second, func() bool { return w.passes(keyB) == 1 })
		k.Inject(pathA, 2, supervision.Panic)
		w.put(keyA) // it waits for its turn
		k.Advance(time.Millisecond)
		w.put(keyC)
		w.put(keyA) // and is down, for half a second
		since := k.Clock().Now()
		k.Advance(400 * time.Millisecond)
		if waits := w.after(keyC, since); len(waits) != 1 || waits[0] > 350*time.Millisecond || len(w.after(keyA, since)) != 0 {
			k.Errorf("behind it, a pass began after %v; it had %v", waits, w.after(keyA, since))
		}
		k.Advance(5 * time.Second)
		if len(w.after(keyA, since)) == 0 {
			k.Errorf("it was forgotten")
		}
	}, seeds)
}

// TestP59_WhileNobodyAnswersOneLooksForAll has a hundred manifests and a source that is down for ten minutes.
func TestP59_WhileNobodyAnswersOneLooksForAll(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		t := DefaultTimings
		t.Resync = 30 * time.Second
		w, _ := run(k, t, Limits{}, func(w *world) {
			for _, key := range manifests(100) {
				w.put(key)
			}
		})
		k.Advance(time.Minute)
		w.setDown(true)
		k.Advance(2 * time.Minute)
		before := len(w.reports)
		k.Advance(10 * time.Minute)
		if n := len(w.reports) - before; n > 10*60 || n < 5*60 {
			k.Errorf("%d looks in ten minutes", n)
		}
		w.setDown(false)
		back := k.Clock().Now()
		k.Advance(6 * time.Second)
		for _, key := range manifests(100) {
			if len(w.after(key, back)) == 0 {
				k.Fatalf("%v has no pass within six seconds", key)
			}
		}
	}, harness.Seeds(1), harness.Once())
}

// TestAConfiguredWindowBoundsPasses is how a configuration of the tree reaches them.
func TestAConfiguredWindowBoundsPasses(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		var lasted time.Duration
		w := newWorld(k.Clock())
		w.put(keyA)
		w.do(func(ctx context.Context, _ Pass) Result {
			began := k.Clock().Now()
			_ = w.clock.Sleep(ctx, time.Hour)
			lasted = k.Clock().Now().Sub(began)
			return Result{}
		})
		root := harness.Group("root", harness.OneForOne, Spec("test", w, w.hooks(), quiet(), Limits{}))
		if err := catalog.Apply(&root, []catalog.Override{{Row: "reconciler", Windows: &catalog.Windows{Hang: "45s"}}}); err != nil {
			k.Fatalf("%v", err)
		}
		k.Tree(root)
		k.Advance(2 * time.Minute)
		if lasted > 45*time.Second || lasted < 44*time.Second {
			k.Errorf("the pass was ended after %v", lasted)
		}
	}, seeds)
}

// late is a world that has nothing to read at first.
type late struct {
	*world
	ready bool
}

// Ready implements Awaiting.
func (l *late) Ready() bool { return l.ready }

func TestNothingIsReadBeforeTheSourceIsReady(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		w := newWorld(k.Clock())
		w.put(keyA)
		l := &late{world: w}
		inTree(k, New("test", l, w.hooks(), quiet(), Limits{}))
		k.Advance(time.Minute)
		if w.passes(keyA) != 0 {
			k.Errorf("a pass before there is anything to read")
		}
		l.ready = true
		k.Advance(retryEvery + 50*time.Millisecond)
		if w.passes(keyA) != 1 {
			k.Errorf("%d passes within a second", w.passes(keyA))
		}
	}, seeds)
}
