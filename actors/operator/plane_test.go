package operator_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/actors/operator"
)

func TestLabelsAreAChangeAndNoGeneration(t *testing.T) {
	seeded(t, func(b *bench) {
		var seen map[string]string
		passes := 0
		p := b.start("a", operator.Func[site](func(_ context.Context, s *state) (operator.Action, error) {
			passes++
			seen = s.Manifest.Labels
			return operator.None(), nil
		}), operator.OperatorConfig{})
		apply := func(label string) {
			m := operator.Manifest[site]{Metadata: operator.Metadata{Namespace: "x", Name: "one", Labels: map[string]string{"l": label}}, Spec: site{Pages: 1}}
			if err := p.Apply(b.Context(), m); err != nil {
				b.Fatalf("%v", err)
			}
			b.Advance(time.Second)
		}
		apply("a")
		apply("a")
		apply("b")
		if v := p.view("x/one"); passes != 2 || seen["l"] != "b" || v.Generation != 1 {
			b.Errorf("%d passes, the last saw %v of %+v", passes, seen, v)
		}
	})
}

func TestAPassHasItsFenceAndItsClock(t *testing.T) {
	seeded(t, func(b *bench) {
		p := b.start("a", operator.Func[site](func(ctx context.Context, s *state) (operator.Action, error) {
			fence, ok := operator.Fence(ctx)
			holder, epoch := s.Fence()
			if !ok || fence.Epoch != 1 || epoch != 1 || holder != "a/1" || fence.Manifest != "Site//one" {
				b.Errorf("the fence is %+v, %t, and %s %d", fence, ok, holder, epoch)
			}
			if err := operator.Fenced(ctx); err != nil || !operator.Now(ctx).Equal(b.Clock().Now()) {
				b.Errorf("fenced: %v, the time is %s at %s", err, operator.Now(ctx), b.Clock().Now())
			}
			return operator.None(), nil
		}), operator.OperatorConfig{})
		p.add("one", 1)
		p.is("one", operator.PhaseReady, 5*time.Second)
		if _, ok := operator.Fence(b.Context()); ok || !errors.Is(operator.Fenced(b.Context()), operator.ErrNotInPass) {
			b.Errorf("a context that is no pass's has a fence")
		}
	})
}

// TestUsersAndPassesWriteTheSameObject changes manifests while their passes are under way: nobody's change is lost.
func TestUsersAndPassesWriteTheSameObject(t *testing.T) {
	seeded(t, func(b *bench) {
		p := b.start("a", press{
			reconcile: func(ctx context.Context, s *state) (operator.Action, error) {
				if err := operator.Sleep(ctx, 100*time.Millisecond); err != nil {
					return operator.None(), err
				}
				return build(ctx, s)
			},
			finalize: func(ctx context.Context, _ *state) error { return operator.Sleep(ctx, 100*time.Millisecond) },
		}, operator.OperatorConfig{})
		for pages := range 20 {
			p.add("one", pages)
			b.Advance(time.Duration(b.Rand().IntN(300)) * time.Millisecond)
		}
		p.is("one", operator.PhaseReady, 5*time.Second)
		b.Advance(time.Second)
		if v := p.view("one"); v.Generation != 20 || v.Status.ObservedGeneration != 20 || string(v.Status.Value) != `{"pages":19}` || v.Status.Attempts != 0 {
			b.Errorf("in the end: %+v", v)
		}
		p.add("one", 20)
		b.Advance(50 * time.Millisecond)
		if err := p.Delete(b.Context(), "one"); err != nil {
			b.Errorf("%v", err)
		}
		if v := p.view("one"); !v.Deleting() {
			b.Errorf("deleted: %+v", v)
		}
		b.Await(5*time.Second, func() bool { _, err := p.Get(b.Context(), "one"); return errors.Is(err, operator.ErrNotFound) })
	})
}

func TestAFeedThatLosesItsPlaceIsBegunAnew(t *testing.T) {
	seeded(t, func(b *bench) {
		passes := map[string]int{}
		p := b.start("a", operator.Func[site](func(ctx context.Context, s *state) (operator.Action, error) {
			passes[s.Manifest.Name]++
			return build(ctx, s)
		}), operator.OperatorConfig{Reads: []operator.Read{operator.Reads(func(v operator.View[ink]) []operator.Key {
			return []operator.Key{{Name: v.Spec.For}}
		})}})
		inks := b.inks("user", operator.Func[ink](dry))
		for i := range 4 {
			p.add(fmt.Sprint("site-", i), 1)
		}
		if err := inks.AddManifest(b.Context(), "x", ink{For: "site-0"}); err != nil {
			b.Fatalf("%v", err)
		}
		b.Advance(5 * time.Second)
		before := passes["site-0"]
		p.line.lose.Store(true)
		p.add("site-1", 2)
		err := errors.Join(p.Delete(b.Context(), "site-2"), inks.Delete(b.Context(), "x"))
		p.add("site-4", 1)
		b.Advance(time.Second)
		p.line.lose.Store(false)
		b.Advance(10 * time.Second)
		if err != nil || p.ready() != 4 || p.view("site-1").Status.ObservedGeneration != 2 || p.Stats().Manifests != 4 {
			b.Errorf("%v, %d are ready, %+v, site-1 is %+v", err, p.ready(), p.Stats(), p.view("site-1").Status)
		}
		if passes["site-0"] != before+1 || passes["site-3"] > 2 {
			b.Errorf("passes %v, site-0 had %d before what it reads was deleted", passes, before)
		}
	})
}
