package health

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

// TestP08_GuiltyActorHasAName: when the process burns CPU, metrics say which actor does, and how
// many messages each of them takes.
func TestP08_GuiltyActorHasAName(t *testing.T) {
	s, r := observed(t)
	pool := s.Pool("node/pods")
	for _, id := range []string{"quiet", "guilty"} {
		pool.Ensure(id, doer)
	}
	var stop atomic.Bool
	var spin func() error
	spin = func() error {
		for until := time.Now().Add(5 * time.Millisecond); time.Now().Before(until); {
		}
		if !stop.Load() {
			pool.Send("guilty", spin)
		}
		return nil
	}
	defer stop.Store(true)
	pool.Send("guilty", spin)
	before, _ := value(t, r, "nodeactor_actor_messages_total", "path=pods/*")
	shares, err := s.MeasureCPU(context.Background(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if guilty := shares["node/pods/guilty"]; guilty < 0.05 || guilty < 5*shares["node/pods/quiet"] {
		t.Errorf("the shares are %v", shares)
	}
	if share, ok := value(t, r, "nodeactor_actor_cpu_cores", "path=pods/*", "row=pod"); !ok || share < shares["node/pods/guilty"] {
		t.Errorf("the metric is %v", share)
	}
	expect(t, r, 0, "nodeactor_actor_cpu_cores", "path=scheduler")
	if after, _ := value(t, r, "nodeactor_actor_messages_total", "path=pods/*"); after < before+10 {
		t.Errorf("%v messages before, %v after", before, after)
	}
	if at, _ := value(t, r, "nodeactor_cpu_measured_timestamp_seconds"); time.Since(time.Unix(int64(at), 0)) > time.Minute {
		t.Errorf("measured at %v", at)
	}
}

func TestMeterMeasuresOnlyABusyProcess(t *testing.T) {
	var m meter
	now, used := time.Unix(1000, 0), time.Duration(0)
	step := func(share float64) bool {
		now = now.Add(watchEvery)
		used += time.Duration(share * float64(watchEvery))
		return m.due(now, used)
	}
	if step(2) {
		t.Error("measured before anything is known")
	}
	for range 100 {
		if step(0.9 * busyShare) {
			t.Fatal("measured a quiet process")
		}
	}
	times := 0
	for range int(10 * measureEvery / watchEvery) {
		if step(1) {
			times++
		}
	}
	if times != 10 {
		t.Errorf("measured %d times in ten minutes", times)
	}
}

// TestBusyProcessIsMeasured: the health actor measures by itself, and goes on when somebody else
// is at it.
func TestBusyProcessIsMeasured(t *testing.T) {
	s, err := supervision.New(supervision.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop(context.Background())
	h := New(Config{System: s, Root: "node", Log: slog.New(slog.DiscardHandler)})
	began := time.Now()
	row, root := catalog.Row("health"), catalog.Row("node")
	row.Start = func() supervision.Handler {
		return &child{Health: h, every: 20 * time.Millisecond, span: 20 * time.Millisecond, used: func() time.Duration { return time.Since(began) }}
	}
	root.Children = []supervision.Spec{row}
	if err := s.Start(root); err != nil {
		t.Fatal(err)
	}
	if _, err := s.MeasureCPU(context.Background(), 100*time.Millisecond); err != nil && !errors.Is(err, supervision.ErrMeasuring) {
		t.Fatal(err)
	}
	for s.LastCPU() == nil && time.Since(began) < 30*time.Second {
		time.Sleep(10 * time.Millisecond)
	}
	if cpu := s.LastCPU(); cpu == nil || cpu.At.Before(began) {
		t.Errorf("the last measurement is %+v", cpu)
	}
	if n, ok := s.Look("node/health"); !ok || n.Generation != 1 || n.LastFault != nil {
		t.Errorf("the health actor is %+v", n)
	}
}
