package kube

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nodeactor/nodeactor/actors/hotloop"
	"github.com/nodeactor/nodeactor/actors/operator/engine"
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
	trips  *prometheus.CounterVec
	ailing prometheus.Gauge
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
		trips: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nodeactor_hot_loops_total",
			Help: "Pauses of reconcilers that wrote in circles.",
		}, []string{"controller", "reason"}),
		ailing: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "nodeactor_ailing_objects",
			Help: "Objects a reconciler of which crashes, hangs, fails or pauses.",
		}),
	}
	for _, family := range []prometheus.Collector{m.passes, m.last, m.trips, m.ailing} {
		if err := registry.Register(family); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *Metrics) count(controller string, report engine.Report) {
	if m == nil {
		return
	}
	m.passes.WithLabelValues(controller, resultName(report.Result)).Inc()
	m.last.WithLabelValues(controller).Set(float64(report.Ended.UnixNano()) / float64(time.Second))
}

func resultName(r engine.Result) string {
	switch {
	case r.Outcome == engine.Conflicted:
		return resultRequeue
	case r.Outcome != engine.Succeeded && r.Outcome != engine.Gone:
		return resultError
	case r.After > 0:
		return resultRequeueAfter
	}
	return resultSuccess
}

func (m *Metrics) tripped(t hotloop.Trip) {
	if m != nil {
		m.trips.WithLabelValues(t.Writer.Name, t.Reason.String()).Inc()
	}
}

func (m *Metrics) complaints(n int) {
	if m != nil {
		m.ailing.Set(float64(n))
	}
}
