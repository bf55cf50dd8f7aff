package images

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

func TestWatchdogFiresOneLimitAfterTheLastTouch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, dog := watch(context.Background(), supervision.RealClock(), time.Minute)
		defer dog.stop()
		for range 5 {
			time.Sleep(50 * time.Second)
			dog.touch()
		}
		<-ctx.Done()
		if took := time.Since(start); took != 310*time.Second || !errors.Is(context.Cause(ctx), ErrStalled) {
			t.Errorf("fired after %v with %v, want after 5m10s with ErrStalled", took, context.Cause(ctx))
		}
	})
}

func TestStoppedWatchdogNeverFires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, dog := watch(context.Background(), supervision.RealClock(), time.Minute)
		dog.stop()
		time.Sleep(time.Hour)
		if errors.Is(context.Cause(ctx), ErrStalled) {
			t.Error("fired after it was stopped")
		}
	})
}
