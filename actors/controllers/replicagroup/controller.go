package replicagroup

import (
	"context"
	"errors"
	"log/slog"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
	"github.com/nodeactor/nodeactor/actors/strategy"
)

// Component is the name under which the controller records Events.
const Component = "replicagroup-controller"

var (
	podKind      = cache.KindOf[*corev1.Pod]()
	revisionKind = cache.KindOf[*appsv1.ControllerRevision]()
)

// Options are what an operator of the node can switch. The zero value manages all groups, bursts included.
type Options struct {
	// Observe lets the controller look only: it writes nothing at all.
	Observe func() bool
	// WithoutBursts removes all hydration bursts, and begins none.
	WithoutBursts func() bool
	// Metrics counts; nil counts nothing.
	Metrics *Metrics
}

func (o Options) observes() bool { return o.Observe != nil && o.Observe() }

func (o Options) settings() strategy.Settings {
	return strategy.Settings{BurstEnabled: o.WithoutBursts == nil || !o.WithoutBursts()}
}

// New makes the controller.
func New(client kubernetes.Interface, clock kube.Clock, events record.EventRecorder, log *slog.Logger, options Options) kube.Controller {
	return kube.Controller{
		Name: "replicagroup", Manifests: Kind,
		Reads: []kube.Read{
			kube.Self(Kind), kube.Controlled(podKind, Kind.GroupVersionKind()), {Kind: SizeKind, Keys: everyGroup}, kube.Silent(revisionKind),
		},
		New: func(c *cache.Cache) kube.Reconciler {
			return &reconciler{world: cluster{c, client}, clock: clock, events: events, log: log, options: options}
		},
	}
}

// everyGroup wakes all groups when a size appears or goes, which is rare: any of them may wait for it.
func everyGroup(c *cache.Cache, _ cache.Change) []kube.Key {
	return kube.Every(c, Kind)
}

// reconciler runs passes over groups.
type reconciler struct {
	world   world
	clock   kube.Clock
	events  record.EventRecorder
	log     *slog.Logger
	options Options
}

// Reconcile implements kube.Reconciler: it takes in what the user has changed, lets the kernel tick over this one group, and writes down
// what people see of it.
func (r *reconciler) Reconcile(ctx context.Context, key kube.Key) (kube.Action, error) {
	g, ok, err := r.world.Group(key)
	if err != nil || !ok || g.DeletionTimestamp != nil {
		return kube.None(), err
	}
	p := &pass{reconciler: r, ctx: ctx, key: key, uid: g.UID, generation: g.Generation}
	if r.options.observes() {
		p.observe()
		return kube.None(), nil
	}
	if err := p.fold(g); err != nil {
		return kube.None(), err
	}
	failed := p.tick()
	next, err := p.finish()
	if err := errors.Join(failed, err); err != nil {
		return kube.None(), err
	}
	return kube.Requeue(next), nil
}

// tick lets the kernel decide. The error is what went wrong of the machinery; what was refused is told on the group.
func (p *pass) tick() error {
	kernel := strategy.New()
	kernel.Alarm = p.alarm
	report, err := kernel.Tick(strategy.Observer{Context: p, ReadOnly: p.options.observes}, p.options.settings())
	p.options.Metrics.count(report)
	for _, failure := range report.Errors {
		if told := new(refusal); errors.As(failure, &told) {
			p.refused = told
			continue
		}
		err = errors.Join(err, failure)
	}
	return err
}

// observe ticks without writing, so that what would be read of the group is read.
func (p *pass) observe() {
	if err := p.tick(); err != nil {
		p.log.Warn("a replica group that is only observed cannot be read", "group", p.key.String(), "err", err)
	}
}

// alarm tells of a mistake in a strategy.
func (p *pass) alarm(c strategy.Conflict) {
	p.log.Error("strategies exclude each other", "group", p.key.String(), "field", c.Field, "strategies", c.Strategies)
	p.event(corev1.EventTypeWarning, "StrategiesConflict", "%v", c)
}
