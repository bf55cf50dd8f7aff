package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/cluster/lease"
)

func TestAPassThatEndsWell(t *testing.T) {
	d := newDesk(t, site{Pages: 3})
	d.fence = lease.Fence{Manifest: "Site//one", Holder: lease.SessionID{Node: "a", Boot: "1"}, Epoch: 7}
	out := d.pass(Func[site](build), OperatorConfig{})
	if out.Verdict != Succeeded || out.After != 0 || d.commits != 1 {
		t.Fatalf("outcome %+v after %d writes", out, d.commits)
	}
	var status siteStatus
	if err := d.rec.Status.Into(&status); err != nil || status.Built != 3 {
		t.Errorf("status %+v, %v", status, err)
	}
	s := d.rec.Status
	if s.Phase != PhaseReady || s.ObservedGeneration != 1 || s.ObservedHash != d.rec.Hash || s.Holder != "a/1" || s.Epoch != 7 {
		t.Errorf("stored %+v", s)
	}
	d.fence.Epoch = 8
	if d.pass(Func[site](build), OperatorConfig{}); d.commits != 1 {
		t.Error("a pass that changed nothing was written, because the lease had changed hands")
	}
}

func TestAFailedPassStoresTheFailureAlone(t *testing.T) {
	d := newDesk(t, site{Pages: 3})
	d.pass(Func[site](build), OperatorConfig{})
	fail := Func[site](func(_ context.Context, s *ManifestState[site]) (Action, error) {
		s.SetCondition(Condition{Type: "Inked", Status: ConditionTrue})
		s.AddFinalizer("example.com/ink")
		return None(), errors.Join(s.SetStatus(siteStatus{Built: 99}), errBroken)
	})
	waits := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60}
	for i, want := range waits {
		out := d.pass(fail, OperatorConfig{})
		s := d.rec.Status
		if out.Verdict != Failed || out.After != want*time.Second || !errors.Is(out.Err, errBroken) {
			t.Fatalf("failure %d: %+v", i+1, out)
		}
		if s.Phase != PhaseRetrying || s.Attempts != i+1 || !s.NextTry.Equal(noon.Add(want*time.Second)) || !strings.Contains(s.LastError, "press") {
			t.Fatalf("failure %d stored %+v", i+1, s)
		}
	}
	if len(d.rec.Status.Conditions)+len(d.rec.Finalizers) != 0 || string(d.rec.Status.Value) != `{"built":3}` {
		t.Errorf("a failed pass stored %+v", d.rec)
	}
	d.pass(Func[site](build), OperatorConfig{})
	if s := d.rec.Status; s.Attempts != 0 || s.LastError != "" || !s.NextTry.IsZero() || s.Phase != PhaseReady {
		t.Errorf("after a success: %+v", s)
	}
}

func TestInterruptedPassesStoreNothing(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	lost := func(context.Context) error { return ErrFenced }
	for name, test := range map[string]struct {
		err   error
		ctx   context.Context
		check func(context.Context) error
		want  Verdict
	}{
		"called off":                      {errBroken, cancelled, nil, Interrupted},
		"the lease is lost":               {fmt.Errorf("cannot print: %w", ErrFenced), context.Background(), lost, Interrupted},
		"another store's fence":           {ErrFenced, context.Background(), func(context.Context) error { return nil }, Failed},
		"a context of the operator's own": {context.Canceled, context.Background(), lost, Failed},
	} {
		d := newDesk(t, site{})
		d.ctx, d.check = test.ctx, test.check
		out := d.pass(Func[site](func(context.Context, *ManifestState[site]) (Action, error) { return None(), test.err }), OperatorConfig{})
		if out.Verdict != test.want || (d.commits == 0) != (test.want == Interrupted) {
			t.Errorf("%s: %+v after %d writes", name, out, d.commits)
		}
	}
}

func TestWhatBecomesOfAPassThatCannotBeStored(t *testing.T) {
	for refuse, want := range map[error]Verdict{ErrFenced: Interrupted, ErrNotFound: Gone, errBroken: Unanswered} {
		d := newDesk(t, site{})
		d.refuse = refuse
		if out := d.pass(Func[site](build), OperatorConfig{}); out.Verdict != want {
			t.Errorf("%v: %+v", refuse, out)
		}
	}
}

func TestAPassThatEndedWellIsStoredThoughItWasCalledOff(t *testing.T) {
	d := newDesk(t, site{Pages: 2})
	ctx, cancel := context.WithCancel(context.Background())
	d.ctx = ctx
	out := d.pass(Func[site](func(ctx context.Context, s *ManifestState[site]) (Action, error) {
		cancel()
		return build(ctx, s)
	}), OperatorConfig{})
	if out.Verdict != Succeeded || d.rec.Status.Phase != PhaseReady {
		t.Errorf("%+v, stored %+v", out, d.rec.Status)
	}
}

func TestAFinalizerIsNotRunAgainBecauseTheStoreWasAway(t *testing.T) {
	finalized := 0
	op := builder{reconcile: build, finalize: func(context.Context, *ManifestState[site]) error { finalized++; return nil }}
	r, err := NewRunner[site](op, OperatorConfig{})
	if err != nil {
		t.Fatal(err)
	}
	d, once := newDesk(t, site{}), &Once{}
	pass := func() Verdict {
		env := d.env()
		env.Once = once
		return r.Pass(d.ctx, d.rec, env).Verdict
	}
	pass()
	d.rec.Deleted, d.refuse = noon, errBroken
	if a, b := pass(), pass(); a != Unanswered || b != Unanswered {
		t.Fatalf("while the store was away: %v, %v", a, b)
	}
	d.refuse = nil
	if got := pass(); got != Gone || !d.gone || finalized != 1 || len(once.uids) != 0 {
		t.Errorf("%v after %d runs of the finalizer, gone %t, remembered %v", got, finalized, d.gone, once.uids)
	}
}

func TestFinalizers(t *testing.T) {
	var finalized, reconciled int
	op := builder{
		reconcile: func(_ context.Context, s *ManifestState[site]) (Action, error) {
			if reconciled++; len(s.Manifest.Finalizers) != 1 {
				t.Error("the pass began before the finalizer was stored")
			}
			return None(), nil
		},
		finalize: func(context.Context, *ManifestState[site]) error {
			if finalized++; finalized < 3 {
				return errBroken
			}
			return nil
		},
	}
	d := newDesk(t, site{})
	d.pass(op, OperatorConfig{})
	d.rec.Deleted = noon
	for range 2 {
		if out := d.pass(op, OperatorConfig{}); out.Verdict != Failed || d.rec.Status.Phase != PhaseDeleting || d.gone {
			t.Fatalf("a failed finalizer: %+v, %+v", out, d.rec)
		}
	}
	d.rec.Finalizers = append(d.rec.Finalizers, "example.com/other")
	if out := d.pass(op, OperatorConfig{}); out.Verdict != Succeeded || d.gone || len(d.rec.Finalizers) != 1 {
		t.Fatalf("the finalizer: %+v, %+v", out, d.rec)
	}
	if out := d.pass(op, OperatorConfig{}); out.Verdict != Succeeded || finalized != 3 || reconciled != 1 {
		t.Errorf("%+v after %d finalizers and %d passes", out, finalized, reconciled)
	}
}

func TestFinalizersOfAPassItself(t *testing.T) {
	op := Func[site](func(_ context.Context, s *ManifestState[site]) (Action, error) {
		s.RemoveFinalizer(finalizerName)
		if s.Deleting() {
			s.RemoveFinalizer("example.com/step")
			s.AddFinalizer("example.com/late")
			return None(), nil
		}
		s.AddFinalizer("example.com/step")
		return None(), nil
	})
	d := newDesk(t, site{})
	d.pass(op, OperatorConfig{})
	if len(d.rec.Finalizers) != 1 {
		t.Fatalf("finalizers %q", d.rec.Finalizers)
	}
	d.rec.Deleted = noon
	if d.pass(op, OperatorConfig{}); !d.gone {
		t.Errorf("still there: %+v", d.rec)
	}
}

func TestAPanicIsStoredAndGoesOn(t *testing.T) {
	d := newDesk(t, site{})
	func() {
		defer func() {
			if v := recover(); v != "no ink" {
				t.Errorf("the panic became %v", v)
			}
		}()
		d.pass(Func[site](func(context.Context, *ManifestState[site]) (Action, error) { panic("no ink") }), OperatorConfig{})
	}()
	if s := d.rec.Status; s.Phase != PhaseRetrying || s.Attempts != 1 || !strings.Contains(s.LastError, "panicked: no ink") {
		t.Errorf("stored %+v", s)
	}
}

// mute is an error that cannot be looked into.
type mute struct{ text string }

func (m mute) Error() string { return m.text }
func (m mute) Unwrap() error { panic("no comment") }

// fickle is an error that tells its text once.
type fickle struct{ told int }

func (f *fickle) Error() string {
	if f.told++; f.told > 1 {
		panic("told already")
	}
	return "out of paper"
}

func TestBad_ErrorThatCannotBeRead(t *testing.T) {
	var none *os.PathError
	const unreadable = "the error of the pass cannot be read: its Error method panicked: "
	for name, test := range map[string]struct {
		err   error
		want  string
		wraps error
	}{
		"a nil pointer":          {none, unreadable + "runtime error: invalid memory address", nil},
		"joined":                 {errors.Join(errBroken, none), unreadable, nil},
		"wrapped":                {fmt.Errorf("cannot print: %w", none), "cannot print: <nil>", nil},
		"not to be looked into":  {mute{"no paper"}, "no paper", nil},
		"lost, and unreadable":   {errors.Join(ErrFenced, mute{"no paper"}), ErrFenced.Error() + "\nno paper", nil},
		"tells its text once":    {&fickle{}, "out of paper", nil},
		"one that is well":       {fmt.Errorf("cannot print: %w", errBroken), "cannot print: the press is broken", errBroken},
		"a nil pointer finalize": {none, unreadable, nil},
	} {
		d, op := newDesk(t, site{}), builder{
			reconcile: func(context.Context, *ManifestState[site]) (Action, error) { return None(), test.err },
			finalize:  func(context.Context, *ManifestState[site]) error { return test.err },
		}
		phase := PhaseRetrying
		if strings.HasSuffix(name, "finalize") {
			d.rec.Deleted, d.rec.Finalizers, phase = noon, []string{finalizerName}, PhaseDeleting
		}
		out := d.pass(op, OperatorConfig{})
		s := d.rec.Status
		if out.Verdict != Failed || out.Attempts != 1 || s.Phase != phase || s.Attempts != 1 || !strings.HasPrefix(s.LastError, test.want) {
			t.Errorf("%s: %+v, stored %+v", name, out, s)
		}
		if errors.Is(out.Err, errNobody) || !strings.HasPrefix(out.Err.Error(), test.want) || test.wraps != nil && !errors.Is(out.Err, test.wraps) {
			t.Errorf("%s: whoever gets the outcome reads %v", name, out.Err)
		}
	}
}

func TestBad_PassThatEndsItsGoroutine(t *testing.T) {
	d, over := newDesk(t, site{}), make(chan struct{})
	go func() {
		defer close(over)
		d.pass(Func[site](func(context.Context, *ManifestState[site]) (Action, error) { runtime.Goexit(); return None(), nil }), OperatorConfig{})
	}()
	<-over
	if s := d.rec.Status; s.Phase != PhaseRetrying || s.Attempts != 1 || s.LastError != "the pass ended its goroutine" {
		t.Errorf("stored %+v", s)
	}
}

func TestDue(t *testing.T) {
	r, err := NewRunner(Func[site](build), OperatorConfig{})
	if err != nil {
		t.Fatal(err)
	}
	stored := func(change func(*Record)) Record {
		rec := Record{Hash: "h", Status: Status{Phase: PhaseRetrying, ObservedHash: "h", NextTry: noon.Add(30 * time.Second)}}
		change(&rec)
		return rec
	}
	for name, test := range map[string]struct {
		rec  Record
		want time.Duration
	}{
		"as stored":               {stored(func(*Record) {}), 30 * time.Second},
		"time has passed":         {stored(func(r *Record) { r.Status.NextTry = noon.Add(-time.Second) }), 0},
		"never failed":            {stored(func(r *Record) { r.Status.NextTry = time.Time{} }), 0},
		"another specification":   {stored(func(r *Record) { r.Hash = "other" }), 0},
		"a clock that ran ahead":  {stored(func(r *Record) { r.Status.NextTry = noon.Add(time.Hour) }), 72 * time.Second},
		"parked for a hot loop":   {stored(func(r *Record) { r.Status.NextTry, r.Status.Phase = noon.Add(5*time.Minute), PhaseParked }), 5 * time.Minute},
		"deleted while it failed": {stored(func(r *Record) { r.Deleted = noon }), 30 * time.Second},
	} {
		if got := r.Due(test.rec, noon).Sub(noon); got != test.want {
			t.Errorf("%s: due in %s, want %s", name, got, test.want)
		}
	}
}

func TestBackoffIsSpread(t *testing.T) {
	for _, test := range []struct {
		failures int
		rnd      float64
		want     time.Duration
	}{{1, 0, 800 * time.Millisecond}, {1, 0.5, time.Second}, {3, 0, 3200 * time.Millisecond}, {20, 0.5, time.Minute}, {1000, 0, 48 * time.Second}} {
		if got := DefaultBackoff.Wait(test.failures, test.rnd); got != test.want {
			t.Errorf("after %d failures at %v: %s, want %s", test.failures, test.rnd, got, test.want)
		}
	}
	if most := DefaultBackoff.Wait(20, 0.999999); most > 72*time.Second || most < 71*time.Second {
		t.Errorf("at most %s", most)
	}
}

func TestAChangeOnANewerRecord(t *testing.T) {
	rec := Record{Metadata: Metadata{Name: "one", Finalizers: []string{"a", "theirs"}, Generation: 5}, Hash: "new"}
	after, gone := Change{Status: &Status{Phase: PhaseReady, ObservedGeneration: 4}, RemoveFinalizers: []string{"a"}, AddFinalizers: []string{"b"}}.On(rec)
	if gone || after.Generation != 5 || fmt.Sprint(after.Finalizers) != "[theirs b]" || after.Status.ObservedGeneration != 4 || len(rec.Finalizers) != 2 {
		t.Errorf("%+v, gone %t, before %+v", after, gone, rec)
	}
	rec.Deleted = noon
	if after, _ = (Change{Status: &Status{Phase: PhaseReady}}).On(rec); after.Status.Phase != PhaseDeleting {
		t.Errorf("deleted while the pass ran: %+v", after.Status)
	}
	if after, _ = (Change{AddFinalizers: []string{"b"}}).On(rec); len(after.Finalizers) != 2 {
		t.Errorf("a finalizer was put on a manifest that is being deleted: %q", after.Finalizers)
	}
	if _, gone = (Change{RemoveFinalizers: []string{"a", "theirs"}}).On(rec); !gone {
		t.Error("held by nothing and not gone")
	}
}

func TestConditions(t *testing.T) {
	s := newState(Record{}, lease.Fence{}, noon)
	s.SetCondition(Condition{Type: "Up", Status: ConditionFalse, Reason: "Starting"})
	s.now = noon.Add(time.Minute)
	s.SetCondition(Condition{Type: "Up", Status: ConditionFalse, Reason: "Waiting"})
	if c, ok := s.Condition("Up"); !ok || !c.Since.Equal(noon) || c.Reason != "Waiting" {
		t.Errorf("the same status: %+v", c)
	}
	s.SetCondition(Condition{Type: "Up", Status: ConditionTrue})
	if c, _ := s.Condition("Up"); !c.Since.Equal(noon.Add(time.Minute)) || len(s.Conditions()) != 1 {
		t.Errorf("another status: %+v", s.Conditions())
	}
	if s.RemoveCondition("Up"); len(s.Conditions()) != 0 {
		t.Errorf("left: %+v", s.Conditions())
	}
}
