package kube

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

// TestF052_AControllerThatNeverRestsIsOneWarning: writes in every second for more than a minute are one WARN, and their end is one INFO.
func TestF052_AControllerThatNeverRestsIsOneWarning(t *testing.T) {
	inWard(t, func(w *ward) {
		w.start()
		w.breaker = NewBreaker(w.cache, supervision.RealClock()) // one that only this reporter asks
		var log bytes.Buffer
		r := NewReporter(Deps{Cache: w.cache, Clock: supervision.RealClock(), Log: slog.New(slog.NewTextHandler(&log, nil)), Breaker: w.breaker}, patcher{w: w}, nil)
		ctx := withWriter(t.Context(), writerOf("test", Key{Namespace: "ns", Name: "busy"}))
		second := func(writes bool, i int) {
			if writes {
				w.put(fmt.Sprint("m", i), 1)
				if err := w.setStatus(ctx, fmt.Sprint("m", i), 7); err != nil {
					t.Fatal(err)
				}
			}
			r.releaseAll()
			time.Sleep(time.Second)
		}
		for i := range 49 {
			second(true, i)
		}
		if log.Len() > 0 {
			t.Errorf("after 49 busy seconds: %s", &log)
		}
		for i := range 30 {
			second(true, 100+i)
		}
		for range 60 {
			second(false, 0)
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "level=WARN") || !strings.Contains(lines[0], "controller=test busy_seconds=50") || !strings.Contains(lines[1], "level=INFO") {
			t.Errorf("the log says:\n%s", &log)
		}
	})
}
