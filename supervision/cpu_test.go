package supervision_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// spin burns CPU until it is told to end.
func spin(end *atomic.Bool) {
	for !end.Load() {
	}
}

// TestMeasureCPU holds that messages and jobs are charged to their actors, and nothing to the
// idle one. A message that is being handled already when the measurement begins is not seen,
// so there are many short ones.
func TestMeasureCPU(t *testing.T) {
	s := newSystem(t)
	must(t, s.Start(sup("root", core.OneForOne, talker(&journal{}, "messages"), talker(&journal{}, "job"), talker(&journal{}, "idle"))))
	defer stopped(t, s)
	var end atomic.Bool
	defer end.Store(true)
	again := func(supervision.Context) error { return nil }
	again = func(ctx supervision.Context) error {
		for began := time.Now(); time.Since(began) < 5*time.Millisecond; {
		}
		if !end.Load() {
			ctx.Send(ctx.Self(), step(again))
		}
		return nil
	}
	s.Send(s.Ref("root/messages"), step(again))
	s.Send(s.Ref("root/job"), step(func(ctx supervision.Context) error {
		ctx.Go(supervision.Job{Name: "spin", Endless: true, Run: func(context.Context, func()) (any, error) { spin(&end); return nil, nil }})
		return nil
	}))
	second := make(chan error, 1)
	go func() {
		time.Sleep(50 * time.Millisecond)
		_, err := s.MeasureCPU(t.Context(), time.Millisecond)
		second <- err
	}()
	shares, err := s.MeasureCPU(t.Context(), 500*time.Millisecond)
	if err := <-second; !errors.Is(err, supervision.ErrMeasuring) {
		t.Errorf("a second measurement beside the first gives %v", err)
	}
	must(t, err)
	// A busy machine may have given them next to nothing so far.
	for tries := 0; tries < 10 && (shares["root/messages"] < 0.02 || shares["root/job"] < 0.02); tries++ {
		shares, err = s.MeasureCPU(t.Context(), 500*time.Millisecond)
		must(t, err)
	}
	t.Logf("shares %v", shares)
	for _, path := range []string{"root/messages", "root/job"} {
		if shares[path] < 0.02 || shares[path] > 2 {
			t.Errorf("%s took %.2f of a core", path, shares[path])
		}
	}
	if shares["root/idle"] > 0.01 {
		t.Errorf("the idle actor took %.2f of a core", shares["root/idle"])
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.MeasureCPU(ended, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("a measurement called off gives %v", err)
	}
}
