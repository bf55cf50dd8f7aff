package operator_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/nodeactor/nodeactor/actors/operator"
	"github.com/nodeactor/nodeactor/supervision"
)

// beside runs an operator that does well with all manifests but one, named bad, and checks in the end that the others never noticed.
func beside(t *testing.T, cfg operator.OperatorConfig, bad func(ctx context.Context, s *state) (operator.Action, error), test func(b *bench, p *process)) {
	t.Helper()
	seeded(t, func(b *bench) {
		p := b.start("a", operator.Func[site](func(ctx context.Context, s *state) (operator.Action, error) {
			if s.Manifest.Name == "bad" {
				return bad(ctx, s)
			}
			return build(ctx, s)
		}), cfg)
		for i := range 5 {
			p.add(fmt.Sprint("good-", i), i)
		}
		p.add("bad", 1)
		test(b, p)
		for i := range 5 {
			name := fmt.Sprint("good-", i)
			p.add(name, 100+i)
			b.Advance(time.Second)
			if v := p.view(name); v.Status.Phase != operator.PhaseReady || v.Status.ObservedGeneration != 2 || v.Status.Attempts != 0 {
				b.Errorf("%s, beside the bad one: %+v", name, v.Status)
			}
		}
	})
}

func TestBad_ReconcileThatPanics(t *testing.T) {
	passes := 0
	beside(t, operator.OperatorConfig{}, func(ctx context.Context, s *state) (operator.Action, error) {
		if passes++; s.Manifest.Spec.Pages == 1 {
			panic("no ink")
		}
		return build(ctx, s)
	}, func(b *bench, p *process) {
		b.Allow("operators/kinds/Site/manifests/bad", supervision.Panic)
		b.AllowDeadLetters() // wakes of an actor that waits for its next try
		v := p.is("bad", operator.PhaseRetrying, 5*time.Second)
		if v.Status.Attempts != 1 || !strings.Contains(v.Status.LastError, "panicked: no ink") || !v.Status.NextTry.After(b.Clock().Now()) {
			b.Errorf("stored after a panic: %+v", v.Status)
		}
		v = p.is("bad", operator.PhaseParked, 5*time.Minute)
		if v.Status.Attempts < 5 || !v.Status.NextTry.After(b.Clock().Now()) {
			b.Errorf("stored beyond the budget: %+v", v.Status)
		}
		if s := p.Stats(); s.Faults < 5 {
			b.Errorf("%+v", s)
		}
		p.add("bad", 2)
		if v = p.is("bad", operator.PhaseReady, 5*time.Second); v.Status.Attempts != 0 || v.Status.LastError != "" {
			b.Errorf("stored when it was mended: %+v", v.Status)
		}
	})
}

func TestBad_ReconcileThatTakesTooLong(t *testing.T) {
	beside(t, operator.OperatorConfig{ReconcileTimeout: 10 * time.Second}, func(ctx context.Context, s *state) (operator.Action, error) {
		if s.Manifest.Spec.Pages == 1 {
			return operator.None(), fmt.Errorf("cannot print: %w", operator.Sleep(ctx, time.Hour))
		}
		return build(ctx, s)
	}, func(b *bench, p *process) {
		v := p.is("bad", operator.PhaseRetrying, 20*time.Second)
		if v.Status.Attempts != 1 || !strings.Contains(v.Status.LastError, "cannot print") {
			b.Errorf("stored after a pass that took too long: %+v", v.Status)
		}
		p.add("bad", 2)
		p.is("bad", operator.PhaseReady, 30*time.Second)
	})
}

func TestBad_ReconcileThatHangs(t *testing.T) {
	beside(t, operator.OperatorConfig{ReconcileTimeout: 10 * time.Second}, func(ctx context.Context, s *state) (operator.Action, error) {
		if s.Manifest.Spec.Pages == 1 {
			_ = operator.Sleep(context.WithoutCancel(ctx), 10*time.Minute)
			return operator.None(), s.SetStatus(built{Pages: -1})
		}
		return build(ctx, s)
	}, func(b *bench, p *process) {
		b.Allow("operators/kinds/Site/manifests/bad", supervision.Hang)
		b.AllowDeadLetters()
		b.AllowAbandoned()
		v := p.is("bad", operator.PhaseRetrying, time.Minute)
		if v.Status.Attempts != 1 || !strings.Contains(v.Status.LastError, "did not end in time") {
			b.Errorf("stored after a pass that hangs: %+v", v.Status)
		}
		p.add("bad", 2)
		v = p.is("bad", operator.PhaseReady, time.Minute)
		if string(v.Status.Value) != `{"pages":2}` || v.Status.Epoch < 2 {
			b.Errorf("stored when it was mended: %+v", v.Status)
		}
		b.Advance(15 * time.Minute) // until the first pass comes back, too late
		if v = p.view("bad"); string(v.Status.Value) != `{"pages":2}` || v.Status.Phase != operator.PhaseReady {
			b.Errorf("stored when the pass that hung came back: %+v", v.Status)
		}
	})
}

func TestBad_ReconcileThatReturnsAnError(t *testing.T) {
	beside(t, operator.OperatorConfig{}, func(ctx context.Context, s *state) (operator.Action, error) {
		return operator.None(), errors.Join(s.SetStatus(built{Pages: 99}), errors.New("no ink"))
	}, func(b *bench, p *process) {
		v := p.is("bad", operator.PhaseRetrying, 5*time.Second)
		if v.Status.Attempts != 1 || v.Status.LastError != "no ink" || v.Status.Value != nil || v.Status.ObservedGeneration != 1 {
			b.Errorf("stored after an error: %+v", v.Status)
		}
	})
}

func TestBad_ReconcileThatReturnsAnErrorThatCannotBeRead(t *testing.T) {
	beside(t, operator.OperatorConfig{}, func(ctx context.Context, s *state) (operator.Action, error) {
		if s.Manifest.Spec.Pages == 1 {
			var none *os.PathError
			return operator.None(), none
		}
		return build(ctx, s)
	}, func(b *bench, p *process) {
		b.Advance(2 * time.Minute)
		v := p.view("bad")
		if v.Status.Phase != operator.PhaseRetrying || v.Status.Attempts < 5 || !strings.Contains(v.Status.LastError, "its Error method panicked") {
			b.Errorf("stored after errors that cannot be read: %+v", v.Status)
		}
		if s := p.Stats(); s.Failed < 5 || s.Faults != 0 {
			b.Errorf("counted: %+v", s)
		}
		p.add("bad", 2)
		p.is("bad", operator.PhaseReady, 5*time.Second)
	})
}

func TestBad_RequeueInThePast(t *testing.T) {
	for _, action := range []operator.Action{operator.Requeue(-time.Second), operator.Requeue(0), operator.RequeueAt(time.Unix(0, 0))} {
		beside(t, operator.OperatorConfig{}, func(context.Context, *state) (operator.Action, error) {
			return action, nil
		}, func(b *bench, p *process) {
			v := p.is("bad", operator.PhaseRetrying, 5*time.Second)
			if v.Status.Attempts != 1 || !strings.Contains(v.Status.LastError, "past") {
				b.Errorf("stored after a requeue in the past: %+v", v.Status)
			}
		})
	}
}

func TestBad_ManifestThatThePassChanges(t *testing.T) {
	for name, change := range map[string]func(s *state){
		"name":          func(s *state) { s.Manifest.Name = "other" },
		"namespace":     func(s *state) { s.Manifest.Namespace = "other" },
		"specification": func(s *state) { s.Manifest.Spec.Pages++ },
		"labels":        func(s *state) { s.Manifest.Labels = map[string]string{"a": "b"} },
		"finalizers":    func(s *state) { s.Manifest.Finalizers = []string{"mine"} },
	} {
		beside(t, operator.OperatorConfig{}, func(ctx context.Context, s *state) (operator.Action, error) {
			change(s)
			return build(ctx, s)
		}, func(b *bench, p *process) {
			v := p.is("bad", operator.PhaseRetrying, 5*time.Second)
			if v.Status.Attempts != 1 || !strings.Contains(v.Status.LastError, operator.ErrManifestChanged.Error()) || v.Status.Value != nil {
				b.Errorf("stored after a change of the %s: %+v", name, v.Status)
			}
			if v.Spec.Pages != 1 || v.Name != "bad" || len(v.Labels)+len(v.Finalizers) != 0 {
				b.Errorf("a change of the %s was stored: %+v", name, v)
			}
		})
	}
}

func TestBad_StatusThatIsAnotherAtEveryPass(t *testing.T) {
	passes := 0
	beside(t, operator.OperatorConfig{}, func(_ context.Context, s *state) (operator.Action, error) {
		passes++
		return operator.Requeue(100 * time.Millisecond), s.SetStatus(built{Pages: passes})
	}, func(b *bench, p *process) {
		v := p.is("bad", operator.PhaseParked, 30*time.Second)
		c, ok := v.Status.Condition(operator.ConditionHotLoop)
		if !ok || c.Status != operator.ConditionTrue || c.Reason == "" || !v.Status.NextTry.After(b.Clock().Now()) {
			b.Errorf("stored of a hot loop: %+v", v.Status)
		}
		before, revision := passes, b.revision("bad")
		b.Advance(v.Status.NextTry.Sub(b.Clock().Now()) - time.Second)
		if passes != before || b.revision("bad") != revision {
			b.Errorf("%d passes while it pauses", passes-before)
		}
		b.Advance(3 * time.Second)
		if v := p.view("bad"); passes == before || v.Status.Phase != operator.PhaseReady {
			b.Errorf("after the pause, %d passes, stored %+v", passes-before, v.Status)
		}
	})
}

func TestLookingAtWhatChangesIsNoHotLoop(t *testing.T) {
	passes := 0
	beside(t, operator.OperatorConfig{}, func(_ context.Context, s *state) (operator.Action, error) {
		passes++
		return operator.Requeue(10 * time.Second), s.SetStatus(built{Pages: passes % 2})
	}, func(b *bench, p *process) {
		before := passes
		b.Advance(5 * time.Minute)
		if v := p.view("bad"); passes-before < 28 || v.Status.Phase != operator.PhaseReady {
			b.Errorf("%d passes in 5 min, stored %+v", passes-before, v.Status)
		}
	})
}

func TestBad_TwoOperatorsForOneKind(t *testing.T) {
	seeded(t, func(b *bench) {
		p := b.plane("a", operator.Func[site](build), operator.OperatorConfig{}, b.store)
		q := b.plane("a", operator.Func[site](build), operator.OperatorConfig{}, b.store)
		if _, err := operator.NewExecution(p, q); !errors.Is(err, operator.ErrKindTaken) || !strings.Contains(err.Error(), "Site") {
			b.Errorf("two operators of one kind: %v", err)
		}
		if err := operator.Execute(b.Context(), p, q); !errors.Is(err, operator.ErrKindTaken) {
			b.Errorf("two operators of one kind: %v", err)
		}
	})
}

func TestBad_NamesThatCannotBeStored(t *testing.T) {
	seeded(t, func(b *bench) {
		p := b.plane("a", operator.Func[site](build), operator.OperatorConfig{}, b.store)
		for name, says := range map[string]string{
			"": "empty", "a/": "empty", "a/b/c": "slash", "a\nb": "control character", "a:b": "it contains a colon", "a:b/c": "it contains a colon",
			"a\xffb": "not valid UTF-8", "a\xff/b": "not valid UTF-8", "\xc3": "not valid UTF-8",
		} {
			namespace, rest, ok := strings.Cut(name, "/")
			if !ok {
				namespace, rest = "", name
			}
			added := p.AddManifest(b.Context(), name, site{})
			applied := p.Apply(b.Context(), operator.Manifest[site]{Metadata: operator.Metadata{Namespace: namespace, Name: rest}})
			for _, err := range []error{added, applied} {
				if !errors.Is(err, operator.ErrName) || !strings.Contains(err.Error(), says) || !utf8.ValidString(err.Error()) {
					b.Errorf("%q: %v", name, err)
				}
			}
		}
		if all, err := p.List(b.Context()); err != nil || len(all) != 0 {
			b.Errorf("stored all the same: %v, %v", all, err)
		}
	})
}
