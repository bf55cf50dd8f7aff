package engine

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

const (
	// syncsPerCommit is how often the database syncs its file for one commit: once for the pages, once for the page that names them.
	syncsPerCommit = 2
	// doubled are the classes of the library's histograms of times, from 1 ms on.
	doubled, doubledFrom = 14, 0.001
)

// The library measures these for the whole process, in a registry that is not served.
var (
	logSyncs = registered("wal_fsync_duration_seconds", "The latency distributions of fsync called by WAL.")
	commits  = registered("backend_commit_duration_seconds", "The latency distributions of commit called by backend.")
)

// registered finds the library's histogram of that name; nil when there is none, as after a change of the library.
func registered(name, help string) prometheus.Collector {
	same := prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: "etcd", Subsystem: "disk", Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(doubledFrom, 2, doubled),
	})
	err := prometheus.Register(same)
	if err == nil {
		prometheus.Unregister(same)
	}
	var known prometheus.AlreadyRegisteredError
	if errors.As(err, &known) {
		return known.ExistingCollector
	}
	return nil
}

// observed is how often c was observed.
func observed(c prometheus.Collector) uint64 {
	m, ok := c.(prometheus.Metric)
	if !ok {
		return 0
	}
	var out dto.Metric
	if err := m.Write(&out); err != nil {
		return 0
	}
	return out.GetHistogram().GetSampleCount()
}

// Syncs is how often the engines of this process have waited for their disk.
type Syncs struct {
	Log      uint64
	Database uint64
}

// Total is all of them.
func (s Syncs) Total() uint64 { return s.Log + s.Database }

func syncs() Syncs {
	return Syncs{Log: observed(logSyncs), Database: syncsPerCommit * observed(commits)}
}
