package operator_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/actors/operator"
	"github.com/nodeactor/nodeactor/actors/operator/storage"
)

// ink is what sites are printed with: a site of that name.
type ink struct {
	Colour string `json:"colour"`
	For    string `json:"for"`
}

func (ink) Kind() string { return "Ink" }

// paper is a kind that nobody declares.
type paper struct{}

func (paper) Kind() string { return "Paper" }

// inks is a control plane that stores inks and is executed by nobody, unless a test does.
func (b *bench) inks(node string, op operator.Operator[ink]) *operator.ControlPlane[ink] {
	b.boots++
	p, err := operator.NewControlPlane(op, operator.OperatorConfig{}, b.store, operator.WithNodeName(node), operator.WithBoot(fmt.Sprint(b.boots)),
		operator.WithLogger(slog.New(slog.DiscardHandler)), operator.WithSystem(b.Config(), b.Adopt))
	if err != nil {
		b.Fatalf("%v", err)
	}
	return p
}

// dry does nothing.
func dry(context.Context, *operator.ManifestState[ink]) (operator.Action, error) {
	return operator.None(), nil
}

func TestDeclaredReadsWakeWhomTheyConcern(t *testing.T) {
	seeded(t, func(b *bench) {
		seen, passes := map[string]string{}, map[string]int{}
		reads := operator.Reads(func(v operator.View[ink]) []operator.Key { return []operator.Key{{Name: v.Spec.For}} })
		p := b.start("a", operator.Func[site](func(ctx context.Context, s *state) (operator.Action, error) {
			passes[s.Manifest.Name]++
			all, err := operator.List[ink](ctx)
			seen[s.Manifest.Name] = ""
			for _, v := range all {
				if v.Spec.For == s.Manifest.Name {
					seen[s.Manifest.Name] += v.Spec.Colour
				}
			}
			return operator.None(), err
		}), operator.OperatorConfig{Reads: []operator.Read{reads}})
		p.add("one", 1)
		p.add("two", 1)
		b.Advance(time.Second)
		ctx, store := b.Context(), b.inks("user", operator.Func[ink](dry))
		step := func(what string, do error, one, two string, newOne, newTwo int) {
			before := map[string]int{"one": passes["one"], "two": passes["two"]}
			b.Advance(time.Second)
			if do != nil || seen["one"] != one || seen["two"] != two {
				b.Errorf("%s: %v, seen %v", what, do, seen)
			}
			if passes["one"]-before["one"] != newOne || passes["two"]-before["two"] != newTwo {
				b.Errorf("%s: passes %v after %v", what, passes, before)
			}
		}
		step("added", store.AddManifest(ctx, "x", ink{"red", "one"}), "red", "", 1, 0)
		step("the same again", store.AddManifest(ctx, "x", ink{"red", "one"}), "red", "", 0, 0)
		step("for another", store.AddManifest(ctx, "x", ink{"red", "two"}), "", "red", 1, 1)
		step("for nobody there", store.AddManifest(ctx, "y", ink{"blue", "three"}), "", "red", 0, 0)
		step("deleted", store.Delete(ctx, "x"), "", "", 0, 1)
	})
}

func TestBad_ReadThatIsNotDeclared(t *testing.T) {
	var got, list error
	beside(t, operator.OperatorConfig{Reads: []operator.Read{operator.Reads[ink](nil)}}, func(ctx context.Context, _ *state) (operator.Action, error) {
		_, got = operator.Get[paper](ctx, operator.Key{Name: "x"})
		_, list = operator.List[site](ctx)
		if _, err := operator.Get[ink](ctx, operator.Key{Name: "x"}); !errors.Is(err, operator.ErrNotFound) {
			return operator.None(), fmt.Errorf("declared, but %w", err)
		}
		return operator.None(), got
	}, func(b *bench, p *process) {
		v := p.is("bad", operator.PhaseRetrying, 5*time.Second)
		if !errors.Is(got, operator.ErrUndeclaredRead) || !errors.Is(list, operator.ErrUndeclaredRead) || v.Status.Attempts != 1 {
			b.Errorf("read %v, listed %v, stored %+v", got, list, v.Status)
		}
		if _, err := operator.Get[ink](b.Context(), operator.Key{Name: "x"}); !errors.Is(err, operator.ErrNotInPass) {
			b.Errorf("read outside of a pass: %v", err)
		}
	})
}

func TestBad_ReadThatPanics(t *testing.T) {
	passes := 0
	reads := operator.Reads(func(v operator.View[ink]) []operator.Key {
		if v.Spec.For == "" {
			panic("for whom?")
		}
		return []operator.Key{{Name: v.Spec.For}}
	})
	beside(t, operator.OperatorConfig{Reads: []operator.Read{reads}}, func(context.Context, *state) (operator.Action, error) {
		passes++
		return operator.None(), nil
	}, func(b *bench, p *process) {
		store := b.inks("user", operator.Func[ink](dry))
		b.Advance(time.Second)
		before := passes
		err := errors.Join(store.AddManifest(b.Context(), "x", ink{}), store.AddManifest(b.Context(), "y", ink{For: "bad"}))
		b.Advance(time.Second)
		if err != nil || passes != before+1 {
			b.Errorf("%v, %d passes after a read that panics and one that does not", err, passes-before)
		}
	})
}

func TestBad_StoredManifestThatIsNone(t *testing.T) {
	passes := 0
	beside(t, operator.OperatorConfig{}, func(context.Context, *state) (operator.Action, error) {
		passes++
		return operator.None(), nil
	}, func(b *bench, p *process) {
		p.is("bad", operator.PhaseReady, 5*time.Second)
		id := storage.ID{Kind: "Site", Name: "bad"}
		write := storage.Write{ID: id, Expected: b.revision("bad"), Value: []byte("no manifest")}
		if _, err := b.store.Write(b.Context(), write); err != nil {
			b.Fatalf("%v", err)
		}
		before := passes
		b.Advance(10 * time.Second)
		if s := p.Stats(); s.Failed < 3 || passes != before {
			b.Errorf("%+v and %d passes of what is no manifest", s, passes-before)
		}
		if _, err := p.Get(b.Context(), "bad"); err == nil {
			b.Errorf("what is no manifest was read")
		}
		if all, err := p.List(b.Context()); len(all) != 5 || err == nil || !strings.Contains(err.Error(), "bad") {
			b.Errorf("listed %d beside what is no manifest: %v", len(all), err)
		}
	})
}

func TestProcessesOfDifferentKindsDoNotWaitForEachOther(t *testing.T) {
	once(t, func(b *bench) {
		a := b.start("a", operator.Func[site](build), operator.OperatorConfig{})
		other := b.inks("b", operator.Func[ink](dry))
		run, err := operator.NewExecution(other)
		if err == nil {
			err = run.Start()
		}
		if err != nil {
			b.Fatalf("%v", err)
		}
		b.Advance(10 * time.Second)
		for i := range 100 {
			a.add(fmt.Sprintf("site-%03d", i), i)
			if err := other.AddManifest(b.Context(), fmt.Sprintf("ink-%03d", i), ink{}); err != nil {
				b.Fatalf("%v", err)
			}
		}
		b.until(2*time.Second, func() bool { return a.held() == 100 && other.Stats().Held == 100 })
		for range 60 {
			b.Advance(time.Second)
			if a.held() != 100 || other.Stats().Held != 100 {
				b.Fatalf("held are %d and %d of 100 and 100", a.held(), other.Stats().Held)
			}
		}
	})
}

func TestOneProcessRunsSeveralKinds(t *testing.T) {
	seeded(t, func(b *bench) {
		sites := b.plane("a", operator.Func[site](build), operator.OperatorConfig{}, b.store)
		inks := b.inks("ignored", operator.Func[ink](dry))
		run, err := operator.NewExecution(sites, inks)
		if err == nil {
			err = run.Start()
		}
		if err = errors.Join(err, sites.AddManifest(b.Context(), "one", site{}), inks.AddManifest(b.Context(), "one", ink{})); err != nil {
			b.Fatalf("%v", err)
		}
		b.Advance(5 * time.Second)
		s, err := sites.Get(b.Context(), "one")
		i, err2 := inks.Get(b.Context(), "one")
		if errors.Join(err, err2) != nil || s.Status.Phase != operator.PhaseReady || i.Status.Phase != operator.PhaseReady {
			b.Errorf("%v %+v, %v %+v", err, s.Status, err2, i.Status)
		}
		if s.Status.Holder != i.Status.Holder || s.Status.Holder != "a/1" {
			b.Errorf("held by %s and %s", s.Status.Holder, i.Status.Holder)
		}
	})
}
