package health

import (
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// Collector shows the tree and the store as metrics. Families without a sample are left
// out: no zero is invented. Actors have series of their own by path, except the members of
// pools: there may be very many, so those of one pool share the path POOL/*.
type Collector struct {
	System *supervision.System
	Root   string
	// Facts returns nil while there is no store.
	Facts func() StoreFacts
	// LastSnapshot is when the newest snapshot of the store was made; nil leaves the family out.
	LastSnapshot func() (at time.Time, ok bool)
	// Resources is how many resources the API serves; 0 leaves the family out.
	Resources func() int

	following sync.Once
	repairs   *prometheus.HistogramVec
	revivals  *prometheus.CounterVec
}

var (
	panicsDesc    = desc("nodeactor_panics_total", "Panics that were contained since the process started.")
	resourcesDesc = desc("apiserver_registered_resources", "Resources the API serves.")
	faultsDesc    = desc("nodeactor_faults_total", "Faults of supervised actors.", "path", "kind")
	deadDesc      = desc("nodeactor_dead_letters_total", "Messages that nobody took.", "reason")
	abandonedDesc = desc("nodeactor_abandoned_total", "Generations that were left behind because they would not stop.")
	zombiesDesc   = desc("nodeactor_zombies", "Generations that were left behind and still run.")
	unaskedDesc   = desc("nodeactor_unasked_stops_total", "Actors that went down for good by their policy.")
	scanDesc      = desc("nodeactor_watchdog_scan_seconds", "Time the watchdog took to look at all actors when it did so last.")
	measuredDesc  = desc("nodeactor_cpu_measured_timestamp_seconds", "When the CPU shares of actors were last measured.")
)

// repairBuckets reach from a restart at once to a back-off at its cap.
var repairBuckets = []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// follow begins to count what only passes by.
func (c *Collector) follow() {
	c.repairs = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "nodeactor_repair_seconds", Help: "Time from a fault of an actor until it ran again.", Buckets: repairBuckets,
	}, []string{"row", "kind"})
	c.revivals = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "nodeactor_revivals_total", Help: "Starts of actors that waited after a fault.",
	}, []string{"row"})
	c.System.Watch(func(change supervision.Change) {
		if change.Repair > 0 && change.Fault != nil {
			c.repairs.WithLabelValues(change.Row, change.Fault.Kind.String()).Observe(change.Repair.Seconds())
		}
		if change.To == core.Starting && (change.From == core.BackingOff || change.From == core.Parked) {
			c.revivals.WithLabelValues(change.Row).Inc()
		}
	})
}

// Describe implements prometheus.Collector. Repairs are counted from the first call on, which
// is that of the registration.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	c.following.Do(c.follow)
	for _, d := range []*prometheus.Desc{
		panicsDesc, resourcesDesc, faultsDesc, deadDesc, abandonedDesc, zombiesDesc, unaskedDesc, scanDesc, measuredDesc,
	} {
		ch <- d
	}
	for _, d := range append(actorDescs[:len(actorDescs):len(actorDescs)], storeDescs...) {
		ch <- d
	}
	c.repairs.Describe(ch)
	c.revivals.Describe(ch)
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	out := samples(ch)
	c.collectStore(out)
	c.collectResources(out)
	c.collectSystem(out)
	pools := pools(Pools(c.System.Spec()))
	c.collectFaults(out, pools)
	c.collectActors(out, pools)
	c.repairs.Collect(ch)
	c.revivals.Collect(ch)
}

// samples is where samples go.
type samples chan<- prometheus.Metric

func (s samples) counter(d *prometheus.Desc, v float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
}

func (s samples) gauge(d *prometheus.Desc, v float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (c *Collector) collectResources(out samples) {
	if c.Resources != nil {
		if n := c.Resources(); n > 0 {
			out.gauge(resourcesDesc, float64(n))
		}
	}
}

func (c *Collector) collectSystem(out samples) {
	out.counter(panicsDesc, float64(supervision.Panics()))
	out.counter(abandonedDesc, float64(c.System.Abandoned()))
	out.gauge(zombiesDesc, float64(c.System.Zombies()))
	out.counter(unaskedDesc, float64(c.System.UnaskedStops()))
	out.gauge(scanDesc, c.System.ScanTime().Seconds())
	for reason, n := range c.System.DeadLettersByReason() {
		out.counter(deadDesc, float64(n), reason)
	}
	if cpu := c.System.LastCPU(); cpu != nil {
		out.gauge(measuredDesc, float64(cpu.At.UnixMilli())/1000)
	}
}

func (c *Collector) collectFaults(out samples, pools pools) {
	sums := map[supervision.FaultKey]uint64{}
	for k, n := range c.System.Faults().Counts() {
		k.Path = short(pools.family(k.Path), c.Root)
		sums[k] += n
	}
	for k, n := range sums {
		out.counter(faultsDesc, float64(n), k.Path, k.Kind.String())
	}
}

// pools are the paths of all pools.
type pools map[string]bool

// Pools are the paths of all pools of a tree; there are none before its start, when root is nil.
func Pools(root *supervision.Spec) map[string]bool {
	found := pools{}
	if root != nil {
		found.add(root, root.ID)
	}
	return found
}

func (p pools) add(s *supervision.Spec, path string) {
	if s.Template != nil {
		p[path] = true
	}
	for i := range s.Children {
		p.add(&s.Children[i], path+"/"+s.Children[i].ID)
	}
}

// family is what an actor is counted under: its path, or that of all members of its pool.
func (p pools) family(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 && p[path[:i]] {
		return path[:i] + "/*"
	}
	return path
}
