package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	_ "net/http/pprof" // served only on --pprof-addr
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"github.com/nodeactor/nodeactor/actors/apiserver"
	"github.com/nodeactor/nodeactor/actors/health"
	"github.com/nodeactor/nodeactor/supervision"
)

const (
	// rootPath is the path of the tree's root.
	rootPath = "node"
	// helperBinary does everything with libcontainer; it lies beside the daemon.
	helperBinary = "nodeactor-runtime"
	// stopTimeout bounds the whole stop; what is left then is reported and abandoned.
	stopTimeout = 25 * time.Second
	// trimAfter is when the memory that booting needed goes back to the system.
	trimAfter = 3 * time.Second
	// countTimeout bounds counting what keeps running.
	countTimeout = 2 * time.Second

	verifyIfGiven = tls.VerifyClientCertIfGiven
)

func kubeVersion() string { return apiserver.BuildVersion().GitVersion }

// NewLogger makes the node's logger; the Kubernetes libraries log through it as well.
func NewLogger(c Config, w io.Writer) *slog.Logger {
	level, err := c.Level()
	if err != nil {
		level = slog.LevelInfo
	}
	log := slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
	// The libraries' own chatter matters only when one looks for it.
	klog.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(w, &slog.HandlerOptions{Level: max(level, slog.LevelWarn)})))
	return log
}

// countPanics adds the panics that the Kubernetes libraries contain to our own count, once
// for the process.
var countPanics = sync.OnceFunc(func() {
	utilruntime.PanicHandlers = append(utilruntime.PanicHandlers, func(context.Context, any) { supervision.CountPanic() })
})

// Report tells how a node ended.
type Report struct {
	// Containers is how many containers keep running; -1 when that could not be found out.
	Containers int
	supervision.StopReport
}

// Farewell is what a person should know after the node has stopped.
func (r Report) Farewell(c Config) string {
	var b strings.Builder
	switch {
	case r.Containers > 0:
		fmt.Fprintf(&b, "The node has stopped. %d containers keep running; the next start takes them over.\n", r.Containers)
	case r.Containers < 0:
		fmt.Fprintln(&b, "The node has stopped. Its containers were not touched.")
	default:
		fmt.Fprintln(&b, "The node has stopped. No container is running.")
	}
	for _, path := range r.Unstopped {
		fmt.Fprintf(&b, "%s would not stop and was left behind.\n", path)
	}
	fmt.Fprintf(&b, "Start it again:                  nodeactor run --data-dir %s\n", c.DataDir)
	fmt.Fprintf(&b, "Remove it and all it has made:   nodeactor reset --yes --data-dir %s\n", c.DataDir)
	return b.String()
}

// Run boots the node, keeps it until ctx ends, and stops it in order. Containers are not
// touched. The error tells why it could not boot, or which fault ended it.
func Run(ctx context.Context, cfg Config, log *slog.Logger) (Report, error) {
	clock := supervision.RealClock()
	begin := clock.Now()
	countPanics()
	if last, ok := ReadLastExit(cfg.DataDir); ok {
		log.Warn("the last run gave up", "at", last.At.Format(time.RFC3339), "reason", last.Reason)
	}
	if err := claimCgroupRoot(cfg); err != nil {
		return Report{}, err
	}
	if err := sameStore(cfg); err != nil {
		return Report{}, err
	}
	kind := kindOfBoot(cfg)
	if err := remember(cfg); err != nil {
		return Report{}, err
	}
	if err := beforeOpening(ctx, cfg, clock, log); err != nil {
		return Report{}, err
	}
	p, err := openParts(cfg, log, clock)
	if err != nil {
		return Report{}, err
	}
	defer p.close()
	p.boot = kind
	servePprof(ctx, cfg, log)
	report, done, err := p.awaitStore(ctx, begin)
	if done {
		return p.recordExit(begin, report, err)
	}
	report, err = p.live(ctx, begin, p.tree)
	if damaged := (damagedStore{}); errors.As(err, &damaged) && ctx.Err() == nil {
		report, err = p.afterDamage(ctx, begin, damaged.error)
	}
	return p.recordExit(begin, report, err)
}

// Kinds of boots, as the log calls them.
const (
	firstBoot = "first_boot"
	resume    = "resume"
)

// kindOfBoot tells whether a node has used the data directory before.
func kindOfBoot(cfg Config) string {
	if _, ok := recorded(cfg.DataDir); ok {
		return resume
	}
	return firstBoot
}

// live runs a tree until ctx ends or it cannot go on.
func (p *parts) live(ctx context.Context, begin time.Time, tree func(*health.Health) (supervision.Spec, error)) (Report, error) {
	h, err := p.prepare(tree)
	if err != nil {
		return Report{Containers: -1}, err
	}
	if p.damage == nil && p.absent.reason() == nil {
		background := p.events.Start(ctx)
		defer func() { background.Cancel(); p.logClose("events", background.Wait()) }()
	}
	if p.damage != nil {
		p.sys.Report(p.damage.fault())
	}
	booted := make(chan error, 1)
	boot := supervision.NewGroup(ctx, "boot", nil)
	boot.Go("start", func(context.Context) error { booted <- p.start(h); return nil })
	err = p.await(ctx, booted, begin)
	h.Drain()
	return p.stop(ctx), err
}

// prepare makes the system and its judge.
func (p *parts) prepare(tree func(*health.Health) (supervision.Spec, error)) (*health.Health, error) {
	sys, err := supervision.New(supervision.Config{Clock: p.clock, Log: p.log})
	if err != nil {
		return nil, err
	}
	p.sys = sys
	p.metrics = prometheus.NewRegistry()
	collector := &health.Collector{System: sys, Root: rootPath, Facts: p.facts, LastSnapshot: p.lastSnapshot}
	if err := p.metrics.Register(collector); err != nil {
		return nil, fmt.Errorf("cannot register metrics: %w", err)
	}
	if err := p.metrics.Register(p.saver); err != nil {
		return nil, fmt.Errorf("cannot register metrics: %w", err)
	}
	all := prometheus.Gatherers{p.metrics, legacyregistry.DefaultGatherer}
	h := health.New(health.Config{
		System: sys, Root: rootPath, Store: p.storeRead, Log: p.log,
		Metrics: promhttp.HandlerFor(all, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}),
	})
	p.root, err = tree(h)
	return h, err
}

func (p *parts) facts() health.StoreFacts {
	if s, _ := p.store.get(); s != nil {
		return s
	}
	return nil
}

func (p *parts) start(*health.Health) error { return p.sys.Start(p.root) }

// await returns when the node is to stop: nil when it was told to.
func (p *parts) await(ctx context.Context, booted <-chan error, begin time.Time) error {
	trimmer := startTrimmer(p.clock)
	defer trimmer.stop()
	for {
		select {
		case err := <-booted:
			if err != nil {
				return err
			}
			if p.absent.reason() == nil {
				p.log.Info("node started", "name", p.cfg.NodeName, "kind", p.boot, "took", p.clock.Now().Sub(begin).Round(time.Millisecond), "kubeconfig", p.cfg.Kubeconfig())
			}
			booted = nil
			trimmer.booted()
		case <-ctx.Done():
			return nil
		case err := <-p.refused:
			return err
		case e := <-p.sys.Done():
			return fmt.Errorf("%w: %w", ErrGaveUp, e.Fault)
		}
	}
}

func (p *parts) stop(ctx context.Context) Report {
	ctx = context.WithoutCancel(ctx)
	stopCtx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	r := Report{StopReport: p.sys.Stop(stopCtx), Containers: -1}
	if p.damage != nil {
		return r // nobody has looked which there are
	}
	countCtx, cancelCount := context.WithTimeout(ctx, countTimeout)
	defer cancelCount()
	if n, err := p.runningContainers(countCtx); err == nil {
		r.Containers = n
	}
	return r
}

func servePprof(ctx context.Context, cfg Config, log *slog.Logger) {
	if cfg.PprofAddr == "" {
		return
	}
	srv := &http.Server{Addr: cfg.PprofAddr, Handler: http.DefaultServeMux, ReadHeaderTimeout: headerTimeout}
	g := supervision.NewGroup(ctx, "pprof", nil)
	g.Go("serve", func(context.Context) error {
		err := srv.ListenAndServe()
		log.Warn("profiles are not served any more", "err", err)
		return err
	})
	context.AfterFunc(ctx, func() { srv.Close() })
}
