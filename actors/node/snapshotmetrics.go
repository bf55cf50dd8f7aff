package node

import (
	"github.com/prometheus/client_golang/prometheus"
)

var (
	snapshotsDesc     = prometheus.NewDesc("nodeactor_snapshots_total", "Saves of the store since the process started.", []string{"result"}, nil)
	snapshotSizeDesc  = prometheus.NewDesc("nodeactor_snapshot_last_bytes", "Size of the newest snapshot of the store.", nil, nil)
	snapshotRevDesc   = prometheus.NewDesc("nodeactor_snapshot_last_revision", "Revision of the newest snapshot of the store.", nil, nil)
	snapshotTookDesc  = prometheus.NewDesc("nodeactor_snapshot_last_duration_seconds", "How long saving it took.", nil, nil)
	snapshotWrongDesc = prometheus.NewDesc("nodeactor_snapshot_failing", "1 while the last save of the store has failed.", nil, nil)
)

// Describe implements prometheus.Collector.
func (s *saver) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{snapshotsDesc, snapshotSizeDesc, snapshotRevDesc, snapshotTookDesc, snapshotWrongDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. What this process has not saved or found has no sample.
func (s *saver) Collect(ch chan<- prometheus.Metric) {
	last, _ := s.last()
	s.mu.Lock()
	defer s.mu.Unlock()
	gauge := func(d *prometheus.Desc, v float64) { ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	ch <- prometheus.MustNewConstMetric(snapshotsDesc, prometheus.CounterValue, float64(s.saved), "success")
	ch <- prometheus.MustNewConstMetric(snapshotsDesc, prometheus.CounterValue, float64(s.wrong), "failure")
	failing := 0.
	if s.failing != nil {
		failing = 1
	}
	gauge(snapshotWrongDesc, failing)
	if !last.Time.IsZero() {
		gauge(snapshotSizeDesc, float64(last.Size))
		gauge(snapshotRevDesc, float64(last.Revision))
	}
	if s.took > 0 {
		gauge(snapshotTookDesc, s.took.Seconds())
	}
}
