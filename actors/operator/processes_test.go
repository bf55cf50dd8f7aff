package operator_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/actors/operator"
	"github.com/nodeactor/nodeactor/cluster/lease"
	"github.com/nodeactor/nodeactor/supervision"
)

// watchman finds passes of one manifest that overlap, and counts passes by the process that runs them.
type watchman struct {
	mu sync.Mutex
	// in are the processes with a pass of a manifest under way.
	in       map[string]string
	overlaps []string
	by       map[string]int
	epochs   map[string]uint64
}

func newWatchman() *watchman {
	return &watchman{in: map[string]string{}, by: map[string]int{}, epochs: map[string]uint64{}}
}

// operator is an operator of the process node whose passes take a while.
func (w *watchman) operator(node string, clock supervision.Clock, takes time.Duration, then operator.Action) operator.Operator[site] {
	return operator.Func[site](func(ctx context.Context, s *state) (operator.Action, error) {
		w.enter(s, node)
		defer w.leave(s)
		if err := clock.Sleep(ctx, takes); err != nil {
			return operator.None(), err
		}
		return then, operator.Fenced(ctx)
	})
}

func (w *watchman) enter(s *state, node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := s.Manifest.Name
	if other, ok := w.in[name]; ok {
		w.overlaps = append(w.overlaps, fmt.Sprintf("%s by %s and %s", name, other, node))
	}
	w.in[name] = node
	w.by[node]++
	if _, epoch := s.Fence(); epoch < w.epochs[name] {
		w.overlaps = append(w.overlaps, fmt.Sprintf("%s went back from epoch %d to %d", name, w.epochs[name], epoch))
	} else {
		w.epochs[name] = epoch
	}
}

func (w *watchman) leave(s *state) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.in, s.Manifest.Name)
}

// until lets time pass until the condition holds; it looks ten times a second, because looking at many manifests takes long.
func (b *bench) until(max time.Duration, holds func() bool) {
	b.T().Helper()
	for end := b.Clock().Now().Add(max); !holds(); b.Advance(100 * time.Millisecond) {
		if !b.Clock().Now().Before(end) {
			b.Fatalf("the condition does not hold after %s", max)
		}
	}
}

// held is how many leases a process holds.
func (p *process) held() int { return p.Stats().Held }

// ready is how many manifests are ready.
func (p *process) ready() (n int) {
	all, err := p.List(p.b.Context())
	if err != nil {
		p.b.Fatalf("%v", err)
	}
	for _, v := range all {
		if v.Status.Phase == operator.PhaseReady {
			n++
		}
	}
	return n
}

func TestF095_TwoWorkersNeverReconcileOneManifestAtATime(t *testing.T) {
	once(t, func(b *bench) {
		w, cfg := newWatchman(), operator.OperatorConfig{Concurrency: 1000}
		a := b.start("a", w.operator("a", b.Clock(), 30*time.Millisecond, operator.Requeue(5*time.Second)), cfg)
		for i := range crowd {
			a.add(fmt.Sprintf("site-%04d", i), i)
		}
		b.Advance(3 * time.Second)
		// The second worker comes, leaves and comes again while leases change hands.
		second := b.start("b", w.operator("b", b.Clock(), 30*time.Millisecond, operator.Requeue(5*time.Second)), cfg)
		b.Advance(20 * time.Second)
		second.Leave()
		b.until(15*time.Second, second.Left)
		b.Advance(5 * time.Second)
		third := b.start("b", w.operator("b", b.Clock(), 30*time.Millisecond, operator.Requeue(5*time.Second)), cfg)
		b.until(2*time.Minute, func() bool { return third.held() == crowd/2 && a.held() == crowd/2 })
		b.Advance(10 * time.Second)
		if len(w.overlaps) > 0 {
			b.Errorf("%d overlaps, the first %s", len(w.overlaps), w.overlaps[0])
		}
		if w.by["a"] < crowd || w.by["b"] < crowd/2 || a.ready() != crowd {
			b.Errorf("passes %v, %d manifests are ready", w.by, a.ready())
		}
	})
}

func TestF095_NoStaleEffectIsAcceptedAfterAFalseVerdict(t *testing.T) {
	once(t, func(b *bench) {
		// The pass of the first worker does not end when it is called off, and its session runs out meanwhile: it comes back too late.
		var late error
		stubborn := operator.Func[site](func(ctx context.Context, s *state) (operator.Action, error) {
			if err := b.Clock().Sleep(context.WithoutCancel(ctx), 40*time.Second); err != nil {
				return operator.None(), err
			}
			late = operator.Fenced(ctx)
			return operator.None(), s.SetStatus(built{Pages: -1})
		})
		a := b.start("a", stubborn, operator.OperatorConfig{})
		a.add("one", 7)
		b.Advance(time.Second)
		c := b.start("c", operator.Func[site](build), operator.OperatorConfig{})
		a.line.set(true)
		v := c.is("one", operator.PhaseReady, 30*time.Second)
		b.Advance(time.Minute)
		after := c.view("one")
		if !errors.Is(late, operator.ErrFenced) || string(after.Status.Value) != `{"pages":7}` || after.Status.Epoch != v.Status.Epoch || v.Status.Epoch != 2 {
			b.Errorf("the late pass was told %v, stored is %+v after %+v", late, after.Status, v.Status)
		}
	})
}

func TestF096_TheManifestsOfADeadWorkerResumeElsewhere(t *testing.T) {
	once(t, func(b *bench) {
		w := newWatchman()
		a := b.start("a", w.operator("a", b.Clock(), time.Millisecond, operator.None()), operator.OperatorConfig{})
		for i := range 100 {
			a.add(fmt.Sprintf("site-%03d", i), i)
		}
		b.until(10*time.Second, func() bool { return a.ready() == 100 })
		c := b.start("c", w.operator("c", b.Clock(), time.Millisecond, operator.None()), operator.OperatorConfig{})
		b.until(time.Minute, func() bool { return c.held() == 50 })
		a.line.set(true)
		died := b.Clock().Now()
		b.until(lease.TTL+2*time.Second, func() bool { return c.held() == 100 })
		took := b.Clock().Now().Sub(died)
		for i := range 100 {
			c.add(fmt.Sprintf("site-%03d", i), i+1000)
		}
		b.until(5*time.Second, func() bool { return c.ready() == 100 && w.by["c"] >= 150 })
		if len(w.overlaps) > 0 {
			b.Errorf("overlaps: %v", w.overlaps)
		}
		b.Note("taken over in %s", took)
	})
}

func TestF097_ANewWorkerTakesAShareOfTheWork(t *testing.T) {
	once(t, func(b *bench) {
		w := newWatchman()
		a := b.start("a", w.operator("a", b.Clock(), time.Millisecond, operator.None()), operator.OperatorConfig{})
		for i := range 300 {
			a.add(fmt.Sprintf("site-%03d", i), i)
		}
		b.until(10*time.Second, func() bool { return a.held() == 300 && a.ready() == 300 })
		c := b.start("c", w.operator("c", b.Clock(), time.Millisecond, operator.None()), operator.OperatorConfig{})
		d := b.start("d", w.operator("d", b.Clock(), time.Millisecond, operator.None()), operator.OperatorConfig{})
		b.until(2*time.Minute, func() bool { return a.held() == 100 && c.held() == 100 && d.held() == 100 })
		b.Advance(time.Second)
		if w.by["c"] < 100 || w.by["d"] < 100 || len(w.overlaps) > 0 {
			b.Errorf("passes %v, overlaps %v", w.by, w.overlaps)
		}
	})
}

func TestF100_AStopGivesTheLeasesBackAndOthersTakeOverAtOnce(t *testing.T) {
	once(t, func(b *bench) {
		w := newWatchman()
		a := b.start("a", w.operator("a", b.Clock(), time.Second, operator.Requeue(2*time.Second)), operator.OperatorConfig{})
		for i := range 100 {
			a.add(fmt.Sprintf("site-%03d", i), i)
		}
		b.Advance(5 * time.Second)
		c := b.start("c", w.operator("c", b.Clock(), time.Second, operator.Requeue(2*time.Second)), operator.OperatorConfig{})
		b.Advance(500 * time.Millisecond)
		left := b.Clock().Now()
		a.Leave()
		b.until(lease.StopWait, a.Left)
		b.until(5*time.Second, func() bool { return c.held() == 100 })
		if took := b.Clock().Now().Sub(left); took > 3*time.Second || a.held() != 0 {
			b.Errorf("it took %s until all leases had changed hands; %d were left", took, a.held())
		}
		if len(w.overlaps) > 0 {
			b.Errorf("overlaps: %v", w.overlaps)
		}
		b.Stop()
	})
}
