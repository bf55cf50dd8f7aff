package health

import (
	"context"
	"syscall"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

const (
	// busyShare is the share of one core from which on it is worth knowing who uses it. A quiet
	// node measures nothing.
	busyShare = 0.25
	// measureEvery is the least time between two measurements, measureFor how long one takes.
	measureEvery = time.Minute
	measureFor   = time.Second
	// measureLimit bounds one measurement with everything around it.
	measureLimit = 20 * time.Second
)

// meter decides when CPU shares are measured.
type meter struct {
	at, measured time.Time
	used         time.Duration
}

// due takes the processor time used so far, and tells whether the process has been busy since
// the last call and was not measured lately.
func (m *meter) due(now time.Time, used time.Duration) bool {
	span, spent := now.Sub(m.at), used-m.used
	first := m.at.IsZero()
	m.at, m.used = now, used
	if first || float64(spent) < busyShare*float64(span) || now.Sub(m.measured) < measureEvery {
		return false
	}
	m.measured = now
	return true
}

// measure lets the actors' shares of the processor be measured if that is due.
func (c *child) measure(ctx supervision.Context) {
	if !c.meter.due(c.System.Clock().Now(), c.used()) {
		return
	}
	ctx.Go(supervision.Job{Name: "measure CPU", Deadline: measureLimit, Run: func(ctx context.Context, _ func()) (any, error) {
		_, err := c.System.MeasureCPU(ctx, c.span)
		return nil, err
	}})
}

// processorTime is the processor time of this process so far.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
