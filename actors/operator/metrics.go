package operator

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Results of a pass as the metric names them. New ones go at the end.
const (
	resultSuccess      = "success"
	resultError        = "error"
	resultRequeue      = "requeue"
	resultRequeueAfter = "requeue_after"
)

// Metrics counts the passes of all controllers. A nil Metrics counts nothing.
type Metrics struct {
	passes *prometheus.CounterVec
	last   *prometheus.GaugeVec
}

// NewMetrics makes the families and registers them.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		passes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "controller_runtime_reconcile_total",
			Help: "Passes of reconcilers by controller and result.",
		}, []string{"controller", "result"}),
		last: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "nodeactor_controller_last_tick_timestamp_seconds",
			Help: "When the last pass of a controller ended.",
		}, []string{"controller"}),
	}
	for _, family := range []prometheus.Collector{m.passes, m.last} {
		if err := registry.Register(family); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *Metrics) count(controller string, how outcome, action Action, now time.Time) {
	if m == nil {
		return
	}
	m.passes.WithLabelValues(controller, resultOf(how, action)).Inc()
	m.last.WithLabelValues(controller).Set(float64(now.UnixNano()) / float64(time.Second))
}

func resultOf(how outcome, action Action) string {
	switch {
	case how == conflicted:
		return resultRequeue
	case how != succeeded:
		return resultError
	case action.After > 0:
		return resultRequeueAfter
	}
	return resultSuccess
}
