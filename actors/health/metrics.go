package health

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nodeactor/nodeactor/supervision"
)

// StoreFacts is what the store is asked for at each scrape.
type StoreFacts interface {
	Revision() int64
	Counts() map[string]int
}

// Collector shows the tree and the store as metrics. Families without a sample are left
// out: no zero is invented.
type Collector struct {
	System *supervision.System
	Root   string
	// Facts returns nil while there is no store.
	Facts func() StoreFacts
	// Resources is how many resources the API serves; 0 leaves the family out.
	Resources func() int
}

var (
	panicsDesc    = desc("nodeactor_panics_total", "Panics that were contained since the process started.")
	revisionDesc  = desc("nodeactor_store_revision", "Newest revision of the store.")
	objectsDesc   = desc("etcd_object_counts", "Stored objects by resource.", "resource")
	resourcesDesc = desc("apiserver_registered_resources", "Resources the API serves.")
	faultsDesc    = desc("nodeactor_faults_total", "Faults of supervised children.", "path", "kind")
	restartsDesc  = desc("nodeactor_child_generation", "Current generation of a supervised child.", "path")
	aliveDesc     = desc("nodeactor_child_alive", "1 while a supervised child is alive.", "path")
	mailboxDesc   = desc("nodeactor_child_mailbox_depth", "Messages that wait for a supervised child.", "path")
	deadDesc      = desc("nodeactor_dead_letters_total", "Messages that nobody took.")
	abandonedDesc = desc("nodeactor_abandoned_total", "Generations that were left behind because they would not stop.")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{panicsDesc, revisionDesc, objectsDesc, resourcesDesc, faultsDesc, restartsDesc, aliveDesc, mailboxDesc, deadDesc, abandonedDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter(panicsDesc, float64(supervision.Panics()))
	counter(deadDesc, float64(c.System.DeadLetters()))
	counter(abandonedDesc, float64(c.System.Abandoned()))
	if facts := c.Facts(); facts != nil {
		gauge(revisionDesc, float64(facts.Revision()))
		for resource, n := range facts.Counts() {
			gauge(objectsDesc, float64(n), resource)
		}
	}
	if c.Resources != nil {
		if n := c.Resources(); n > 0 {
			gauge(resourcesDesc, float64(n))
		}
	}
	c.collectFaults(counter)
	c.collectChildren(gauge)
}

func (c *Collector) collectFaults(counter func(*prometheus.Desc, float64, ...string)) {
	sums := map[supervision.FaultKey]uint64{}
	for k, n := range c.System.Faults().Counts() {
		k.Path = family(short(k.Path, c.Root))
		sums[k] += n
	}
	for k, n := range sums {
		counter(faultsDesc, float64(n), k.Path, k.Kind.String())
	}
}

func (c *Collector) collectChildren(gauge func(*prometheus.Desc, float64, ...string)) {
	c.System.Inspect().Walk(func(n supervision.Node) bool {
		if n.Path == "" || n.Supervisor || pooled(n) {
			return true
		}
		path := short(n.Path, c.Root)
		alive := 0.0
		if judge(n) == nil {
			alive = 1
		}
		gauge(aliveDesc, alive, path)
		gauge(restartsDesc, float64(n.Generation), path)
		gauge(mailboxDesc, float64(n.Mailbox), path)
		return true
	})
}

// family drops the member from a path into a pool: there may be very many.
func family(path string) string {
	for _, pool := range []string{"/manifests/", "/pods/"} {
		if i := strings.Index(path, pool); i >= 0 {
			return path[:i+len(pool)-1]
		}
	}
	return path
}
