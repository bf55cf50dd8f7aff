package operator_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/actors/operator"
	"github.com/nodeactor/nodeactor/actors/operator/storage"
	"github.com/nodeactor/nodeactor/test/harness"
)

// site is the specification of the tests, built what their operators say of it.
type site struct {
	Pages int `json:"pages"`
}

func (site) Kind() string { return "Site" }

type built struct {
	Pages int `json:"pages"`
}

// state is what the tests' operators are given.
type state = operator.ManifestState[site]

// bench is one store and the processes on it, in one run of a test.
type bench struct {
	*harness.Kit
	store *storage.MemoryStore
	boots int
}

// seeded runs a test on some seeds of the scheduler.
func seeded(t *testing.T, test func(b *bench)) {
	t.Helper()
	harness.Sim(t, func(k *harness.Kit) {
		test(&bench{Kit: k, store: storage.Memory(storage.WithClock(k.Clock()))})
	}, harness.Seeds(seeds))
}

// once runs a test on one seed: for those of many manifests.
func once(t *testing.T, test func(b *bench)) {
	t.Helper()
	harness.Sim(t, func(k *harness.Kit) {
		test(&bench{Kit: k, store: storage.Memory(storage.WithClock(k.Clock()))})
	}, harness.Seeds(1))
}

// process is a process that runs one operator.
type process struct {
	*operator.ControlPlane[site]
	*operator.Execution
	b    *bench
	line *line
}

// plane makes a control plane that is not executed.
func (b *bench) plane(node string, op operator.Operator[site], cfg operator.OperatorConfig, store storage.Store) *operator.ControlPlane[site] {
	b.boots++
	p, err := operator.NewControlPlane(op, cfg, store, operator.WithNodeName(node), operator.WithBoot(fmt.Sprint(b.boots)),
		operator.WithLogger(slog.New(slog.DiscardHandler)), operator.WithSystem(b.Config(), b.Adopt))
	if err != nil {
		b.Fatalf("%v", err)
	}
	return p
}

// start executes an operator.
func (b *bench) start(node string, op operator.Operator[site], cfg operator.OperatorConfig) *process {
	way := &line{Store: b.store}
	p := &process{ControlPlane: b.plane(node, op, cfg, way), b: b, line: way}
	var err error
	if p.Execution, err = operator.NewExecution(p.ControlPlane); err != nil {
		b.Fatalf("%v", err)
	}
	if err := p.Execution.Start(); err != nil {
		b.Fatalf("%v", err)
	}
	return p
}

// add stores a manifest.
func (p *process) add(name string, pages int) {
	if err := p.AddManifest(p.b.Context(), name, site{Pages: pages}); err != nil {
		p.b.Fatalf("%v", err)
	}
}

// view reads a manifest.
func (p *process) view(name string) operator.View[site] {
	v, err := p.Get(p.b.Context(), name)
	if err != nil {
		p.b.Fatalf("%v", err)
	}
	return v
}

// is waits until a manifest is in a phase.
func (p *process) is(name string, phase operator.Phase, max time.Duration) operator.View[site] {
	p.b.Await(max, func() bool { return p.view(name).Status.Phase == phase })
	return p.view(name)
}

// build stores how many pages there are.
func build(_ context.Context, s *state) (operator.Action, error) {
	return operator.None(), s.SetStatus(built{Pages: s.Manifest.Spec.Pages})
}

func TestF090_AnOperatorSeesTypedManifests(t *testing.T) {
	seeded(t, func(b *bench) {
		var seen operator.Manifest[site]
		p := b.start("a", operator.Func[site](func(_ context.Context, s *state) (operator.Action, error) {
			seen = s.Manifest
			return operator.None(), nil
		}), operator.OperatorConfig{})
		p.add("press/front", 3)
		v := p.is("press/front", operator.PhaseReady, 5*time.Second)
		if seen.Spec.Pages != 3 || seen.Namespace != "press" || seen.Name != "front" || seen.UID == "" || seen.Generation != 1 {
			b.Errorf("the operator saw %+v", seen)
		}
		if v.Status.ObservedGeneration != 1 || v.Status.Holder != "a/1" || v.Status.Epoch != 1 {
			b.Errorf("stored %+v", v.Status)
		}
	})
}

func TestF091_AChangeTriggersAReconcileAndTheSameContentDoesNot(t *testing.T) {
	seeded(t, func(b *bench) {
		passes := 0
		p := b.start("a", operator.Func[site](func(ctx context.Context, s *state) (operator.Action, error) {
			passes++
			return build(ctx, s)
		}), operator.OperatorConfig{})
		p.add("one", 1)
		p.is("one", operator.PhaseReady, 5*time.Second)
		b.Advance(time.Second)
		before, revision := passes, b.revision("one")
		p.add("one", 1)
		b.Advance(10 * time.Second)
		if passes != before || b.revision("one") != revision {
			b.Errorf("the same content led to %d passes and revision %d after %d", passes-before, b.revision("one"), revision)
		}
		p.add("one", 2)
		b.Advance(20 * time.Millisecond)
		if v := p.view("one"); passes != before+1 || v.Generation != 2 || v.Status.ObservedGeneration != 2 || string(v.Status.Value) != `{"pages":2}` {
			b.Errorf("another content led to %d passes and %+v", passes-before, v)
		}
		b.Advance(10 * time.Second)
		if passes != before+1 {
			b.Errorf("what a pass wrote led to %d more", passes-before-1)
		}
	})
}

// revision is that of a manifest's last write.
func (b *bench) revision(name string) storage.Revision {
	obj, err := b.store.GetObject(b.Context(), storage.ID{Kind: "Site", Name: name})
	if err != nil {
		b.Fatalf("%v", err)
	}
	return obj.Revision
}

// times runs an operator and notes when its passes began, since the first.
func (b *bench) times(cfg operator.OperatorConfig, run func(pass int, s *state) (operator.Action, error)) (*process, *[]time.Duration) {
	var first time.Time
	began := &[]time.Duration{}
	return b.start("a", operator.Func[site](func(_ context.Context, s *state) (operator.Action, error) {
		if first.IsZero() {
			first = b.Clock().Now()
		}
		*began = append(*began, b.Clock().Now().Sub(first))
		return run(len(*began), s)
	}), cfg), began
}

func TestF092_NoneRestsAndRequeueRunsAgain(t *testing.T) {
	seeded(t, func(b *bench) {
		p, began := b.times(operator.OperatorConfig{}, func(pass int, _ *state) (operator.Action, error) {
			switch pass {
			case 1:
				return operator.Requeue(10 * time.Second), nil
			case 2:
				return operator.RequeueAt(b.Clock().Now().Add(time.Second)), nil
			}
			return operator.None(), nil
		})
		p.add("one", 1)
		b.Advance(3 * time.Minute)
		if len(*began) != 3 || !near((*began)[1], 10*time.Second) || !near((*began)[2], 11*time.Second) {
			b.Errorf("passes at %v", *began)
		}
	})
}

// near allows for the time that steps take.
func near(got, want time.Duration) bool { return got >= want && got < want+200*time.Millisecond }

func TestF093_ResyncRunsPassesWithoutAnyChange(t *testing.T) {
	seeded(t, func(b *bench) {
		p, began := b.times(operator.OperatorConfig{}, func(int, *state) (operator.Action, error) { return operator.None(), nil })
		p.add("one", 1)
		b.Advance(32 * time.Minute)
		if n := len(*began); n < 6 || n > 9 {
			b.Fatalf("%d passes in 32 min: %v", n, *began)
		}
		for i, at := range (*began)[1:] {
			if gap := at - (*began)[i]; gap < 4*time.Minute || gap > 6*time.Minute+time.Second {
				b.Errorf("pass %d came %s after the one before", i+1, gap)
			}
		}
	})
}

func TestF094_TheWaitAfterFailuresGrowsAndIsResetBySuccess(t *testing.T) {
	seeded(t, func(b *bench) {
		p, began := b.times(operator.OperatorConfig{}, func(pass int, _ *state) (operator.Action, error) {
			if pass == 9 {
				return operator.Requeue(time.Second), nil
			}
			return operator.None(), fmt.Errorf("no ink")
		})
		p.add("one", 1)
		b.Advance(30 * time.Second)
		if s := p.view("one").Status; s.Phase != operator.PhaseRetrying || s.Attempts < 4 || s.LastError != "no ink" || !s.NextTry.After(b.Clock().Now()) {
			b.Errorf("stored while it fails: %+v", s)
		}
		b.Advance(6 * time.Minute)
		for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 1, 1} {
			gap, want := (*began)[i+1]-(*began)[i], want*time.Second
			if i == 8 && near(gap, want) {
				continue
			}
			if gap < want*8/10 || gap > want*12/10+100*time.Millisecond {
				b.Errorf("the wait after failure %d was %s", i+1, gap)
			}
		}
	})
}

func TestF094_ATakeoverGoesOnWithTheAttempts(t *testing.T) {
	seeded(t, func(b *bench) {
		fail := operator.Func[site](func(context.Context, *state) (operator.Action, error) { return operator.None(), fmt.Errorf("no ink") })
		p := b.start("a", fail, operator.OperatorConfig{})
		p.add("one", 1)
		b.Await(2*time.Minute, func() bool { return p.view("one").Status.Attempts == 5 })
		p.Leave()
		b.Await(10*time.Second, p.Left)
		next := p.view("one").Status.NextTry
		var took time.Time
		q := b.start("b", operator.Func[site](func(_ context.Context, s *state) (operator.Action, error) {
			if took.IsZero() {
				took = b.Clock().Now()
			}
			if s.Attempts() != 5 {
				b.Errorf("the next holder sees %d attempts", s.Attempts())
			}
			return operator.None(), nil
		}), operator.OperatorConfig{})
		v := q.is("one", operator.PhaseReady, 2*time.Minute)
		if took.Before(next) || took.After(next.Add(time.Second)) || v.Status.Attempts != 0 || v.Status.Epoch != 2 {
			b.Errorf("tried at %s, due at %s, stored %+v", took, next, v.Status)
		}
	})
}

func TestF098_WhatAnOperatorChangesIsStoredAndReadable(t *testing.T) {
	seeded(t, func(b *bench) {
		p := b.start("a", operator.Func[site](func(ctx context.Context, s *state) (operator.Action, error) {
			s.SetCondition(operator.Condition{Type: "Printed", Status: operator.ConditionTrue, Reason: "Done"})
			s.AddFinalizer("example.com/ink")
			return build(ctx, s)
		}), operator.OperatorConfig{})
		p.add("one", 4)
		p.is("one", operator.PhaseReady, 5*time.Second)
		reader := b.plane("reader", operator.Func[site](build), operator.OperatorConfig{}, b.store)
		all, err := reader.List(b.Context())
		if err != nil || len(all) != 1 {
			b.Fatalf("listed %v, %v", all, err)
		}
		var status built
		if err := all[0].Status.Into(&status); err != nil || status.Pages != 4 {
			b.Errorf("status %+v, %v", status, err)
		}
		if c, ok := all[0].Status.Condition("Printed"); !ok || c.Status != operator.ConditionTrue || c.Since.IsZero() || len(all[0].Finalizers) != 1 {
			b.Errorf("stored %+v", all[0])
		}
	})
}

// press is an operator that finalizes.
type press struct {
	reconcile func(ctx context.Context, s *state) (operator.Action, error)
	finalize  func(ctx context.Context, s *state) error
}

func (p press) Reconcile(ctx context.Context, s *state) (operator.Action, error) {
	return p.reconcile(ctx, s)
}

func (p press) Finalize(ctx context.Context, s *state) error { return p.finalize(ctx, s) }

func TestF099_DeletionFinalizesOnceThenTheManifestIsGone(t *testing.T) {
	seeded(t, func(b *bench) {
		finalized := 0
		p := b.start("a", press{reconcile: build, finalize: func(_ context.Context, s *state) error {
			if finalized++; finalized < 3 {
				return fmt.Errorf("the press still runs")
			}
			return nil
		}}, operator.OperatorConfig{})
		p.add("one", 1)
		p.is("one", operator.PhaseReady, 5*time.Second)
		if err := p.Delete(b.Context(), "one"); err != nil {
			b.Fatalf("%v", err)
		}
		b.Advance(500 * time.Millisecond)
		if v := p.view("one"); v.Status.Phase != operator.PhaseDeleting || !v.Deleting() || v.Status.Attempts != 1 {
			b.Errorf("while the finalizer fails: %+v", v)
		}
		if err := p.AddManifest(b.Context(), "one", site{Pages: 2}); !errors.Is(err, operator.ErrDeleting) {
			b.Errorf("added while it goes: %v", err)
		}
		b.Await(10*time.Second, func() bool { _, err := p.Get(b.Context(), "one"); return errors.Is(err, operator.ErrNotFound) })
		b.Advance(10 * time.Minute)
		if finalized != 3 {
			b.Errorf("finalized %d times", finalized)
		}
		p.add("one", 2)
		if v := p.is("one", operator.PhaseReady, 5*time.Second); v.Generation != 1 || string(v.Status.Value) != `{"pages":2}` {
			b.Errorf("made again: %+v", v)
		}
	})
}

func TestF099_DeletionWithoutAFinalizerIsImmediate(t *testing.T) {
	seeded(t, func(b *bench) {
		p := b.start("a", operator.Func[site](build), operator.OperatorConfig{})
		p.add("one", 1)
		p.is("one", operator.PhaseReady, 5*time.Second)
		if err := p.Delete(b.Context(), "one"); err != nil {
			b.Fatalf("%v", err)
		}
		if err := p.Delete(b.Context(), "one"); !errors.Is(err, operator.ErrNotFound) {
			b.Errorf("deleted again: %v", err)
		}
		b.Advance(10 * time.Second)
		if s := p.Stats(); s.Manifests != 0 {
			b.Errorf("%d manifests are known of", s.Manifests)
		}
	})
}

func TestF090_ReadersSeeThatAPassRuns(t *testing.T) {
	seeded(t, func(b *bench) {
		p := b.start("a", operator.Func[site](func(ctx context.Context, s *state) (operator.Action, error) {
			return operator.None(), operator.Sleep(ctx, 10*time.Second)
		}), operator.OperatorConfig{})
		p.add("one", 1)
		if v := p.is("one", operator.PhaseReconciling, 5*time.Second); v.Status.Holder != "a/1" || v.Status.Epoch != 1 {
			b.Errorf("while a pass runs: %+v", v.Status)
		}
		if revision := b.revision("one"); revision != 1 {
			b.Errorf("revision %d while a pass runs", revision)
		}
		p.is("one", operator.PhaseReady, 15*time.Second)
	})
}
