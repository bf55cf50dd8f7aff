package replicagroup

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nodeactor/nodeactor/actors/strategy"
)

// Metrics counts what kernels did. A nil Metrics counts nothing.
type Metrics struct {
	batches   *prometheus.CounterVec
	shed      prometheus.Counter
	conflicts *prometheus.CounterVec
}

// NewMetrics makes the families and registers them.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		batches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nodeactor_replica_group_batches_total", Help: "Batches of decisions about replica groups by outcome.",
		}, []string{"outcome"}),
		shed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "nodeactor_replica_group_shed_total", Help: "Changes and bursts that were given up for lack of room.",
		}),
		conflicts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nodeactor_replica_group_conflicts_total", Help: "Fields that strategies wanted to be different things, which is a bug.",
		}, []string{"field"}),
	}
	for _, family := range []prometheus.Collector{m.batches, m.shed, m.conflicts} {
		if err := registry.Register(family); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *Metrics) count(r strategy.Report) {
	if m == nil {
		return
	}
	for outcome, n := range map[strategy.Outcome]int{strategy.Applied: r.Applied, strategy.Rejected: r.Rejected, strategy.Exhausted: r.Exhausted} {
		if n > 0 {
			m.batches.WithLabelValues(strings.ToLower(outcome.String())).Add(float64(n))
		}
	}
	m.shed.Add(float64(len(r.Shed)))
	for _, c := range r.Conflicts {
		m.conflicts.WithLabelValues(c.Field).Inc()
	}
}
