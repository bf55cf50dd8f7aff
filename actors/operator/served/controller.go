package served

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"reflect"
	"time"

	"k8s.io/client-go/rest"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/operator"
	"github.com/nodeactor/nodeactor/actors/operator/engine"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
	"github.com/nodeactor/nodeactor/supervision"
)

// Deps is what served operators need of their node.
type Deps struct {
	// Config gives the configuration of a client of the API that goes through the breaker's Guard, in the name of a user.
	Config func(user string) *rest.Config
	Clock  kube.Clock
	Log    *slog.Logger
	// Events tells on definitions what is wrong with them; nil tells nothing.
	Events *kube.Recorder
}

// userPrefix begins the name of the user that an operator is to the API.
const userPrefix = "nodeactor:operator:"

// Controllers are the controllers that serve the operators. Check them first.
func Controllers(ops []*Operator, deps Deps) ([]kube.Controller, error) {
	kinds := map[string]*Operator{}
	for _, o := range ops {
		kinds[o.Kind()] = o
	}
	var all []kube.Controller
	for _, o := range ops {
		c, err := o.controller(kinds, deps)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

func (o *Operator) controller(kinds map[string]*Operator, deps Deps) (kube.Controller, error) {
	config := rest.CopyConfig(deps.Config(userPrefix + o.name()))
	config.UserAgent = "nodeactor-operator-" + o.name()
	clients, err := newClients(config, o.resource)
	if err != nil {
		return kube.Controller{}, err
	}
	kind := o.resource.cached()
	timings := o.timings()
	c := kube.Controller{
		Name: o.name(), Manifests: kind, Conditioned: true, Timings: &timings,
		Limits: engine.Limits{Concurrency: o.cfg.Concurrency, Timeout: o.cfg.ReconcileTimeout},
		Recall: func(reader *cache.Cache, key kube.Key) (int, time.Time) {
			return o.recall(reader, key, deps.Clock.Now())
		},
		Reads: []kube.Read{{Kind: kind, Keys: o.changed}},
		New: func(reader *cache.Cache) kube.Reconciler {
			return &reconciler{operator: o, clients: clients, clock: deps.Clock, cache: reader, kinds: kinds, writer: writer{
				client: clients.dynamic.Resource(o.resource.groupVersionResource()), resource: o.resource,
				newest: func(namespace, name string) (*object, error) { return o.newest(reader, namespace, name) },
			}}
		},
	}
	c.Define = (&definer{operator: o, client: clients.dynamic, deps: deps}).run
	for _, owned := range o.owned {
		c.Reads = append(c.Reads, kube.Controlled(owned, o.resource.groupVersionKind()))
	}
	for _, read := range o.cfg.Reads {
		c.Reads = append(c.Reads, o.reads(read, kinds[read.Kind()], deps.Log))
	}
	return c, nil
}

// timings are what the operator's configuration says. Its actors stay to be seen.
func (o *Operator) timings() engine.Timings {
	t := engine.DefaultTimings
	t.Resync, t.Linger = o.cfg.Resync, 0
	t.Backoff = engine.Backoff{Initial: o.cfg.Backoff.Initial, Cap: o.cfg.Backoff.Cap, Factor: o.cfg.Backoff.Factor, Jitter: o.cfg.Backoff.Jitter}
	return t
}

// recall is what the status of an object says of the passes before: whoever goes on does not begin hot.
func (o *Operator) recall(reader *cache.Cache, key kube.Key, now time.Time) (failures int, next time.Time) {
	object, err := o.newest(reader, key.Namespace, key.Name)
	if err != nil || object == nil {
		return 0, now
	}
	rec := o.passes.record(object)
	return rec.Status.Attempts, o.passes.due(rec, now)
}

// newest reads an object as it is stored now; nil when there is none.
func (o *Operator) newest(reader *cache.Cache, namespace, name string) (*object, error) {
	record, ok := reader.Record(o.resource.cached(), namespace, name)
	if !ok {
		return nil, nil
	}
	return read(record, o.tree)
}

// changed wakes a manifest for what its users say, not for what its status says.
func (o *Operator) changed(_ *cache.Cache, change cache.Change) []kube.Key {
	meta := change.Meta()
	self := []kube.Key{{Namespace: meta.Namespace, Name: meta.Name}}
	if change.Old.Zero() || change.New.Zero() {
		return self
	}
	before, knownBefore := wantedOf(change.Old)
	after, knownAfter := wantedOf(change.New)
	if knownBefore && knownAfter && reflect.DeepEqual(before, after) {
		return nil
	}
	return self
}

// reads turns a declared read of another operator's kind into what the node wakes by: what a manifest says before and after a change.
func (o *Operator) reads(read operator.Read, of *Operator, log *slog.Logger) kube.Read {
	if !read.Wakes() {
		return kube.Silent(of.resource.cached())
	}
	return kube.Read{Kind: of.resource.cached(), Keys: func(_ *cache.Cache, change cache.Change) []kube.Key {
		var keys []kube.Key
		for _, record := range []cache.Record{change.Old, change.New} {
			if record.Zero() {
				continue
			}
			concerned, err := of.concerned(read, record)
			if err != nil {
				log.Warn("a change could not be read and wakes nobody", "kind", of.Kind(), "reader", o.Kind(), "key", record.Key, "cause", err)
			}
			for _, key := range concerned {
				keys = append(keys, kube.Key{Namespace: key.Namespace, Name: key.Name})
			}
		}
		return keys
	}}
}

func (o *Operator) concerned(read operator.Read, record cache.Record) ([]operator.Key, error) {
	stored, err := readRecord(o, record)
	if err != nil {
		return nil, err
	}
	return read.Concerns(stored)
}

func readRecord(o *Operator, record cache.Record) (operator.Record, error) {
	object, err := read(record, o.tree)
	if err != nil {
		return operator.Record{}, err
	}
	return o.passes.record(object), nil
}

// reconciler runs the passes of one operator.
type reconciler struct {
	operator *Operator
	clients  *clients
	clock    kube.Clock
	cache    *cache.Cache
	kinds    map[string]*Operator
	writer   writer
	// once remembers who was finalized while the API was away.
	once operator.Once
}

// Reconcile implements kube.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, at kube.Key) (kube.Action, error) {
	key := operator.Key{Namespace: at.Namespace, Name: at.Name}
	o, err := r.operator.newest(r.cache, key.Namespace, key.Name)
	if err != nil || o == nil {
		return kube.Done(), err
	}
	if o, err = r.deleting(ctx, key, o); err != nil {
		return kube.None(), err
	}
	ctx = context.WithValue(ctx, clientsKey{}, r.clients)
	out := r.operator.passes.pass(ctx, r.operator.passes.record(o), r.env(key, string(o.UID)))
	return answer(out)
}

// deleting shows that an object is to go, before its operator begins to let it.
func (r *reconciler) deleting(ctx context.Context, key operator.Key, o *object) (*object, error) {
	if o.DeletionTimestamp == nil || o.status.Phase == operator.PhaseDeleting {
		return o, nil
	}
	said := o.status.manifest()
	said.Phase = operator.PhaseDeleting
	return r.writer.commit(context.WithoutCancel(ctx), key, string(o.UID), operator.Change{Status: &said})
}

// env is what a pass needs of this node.
func (r *reconciler) env(key operator.Key, uid string) operator.Env {
	return operator.Env{
		Now: r.clock.Now, Jitter: placeOf(key), Check: supervision.CheckFence, Reader: reader{r}, Once: &r.once,
		Commit: func(ctx context.Context, change operator.Change) (operator.Record, error) {
			o, err := r.writer.commit(ctx, key, uid, change)
			if err != nil {
				return operator.Record{}, err
			}
			return r.operator.passes.record(o), nil
		},
	}
}

// placeOf gives each manifest its place between 0 and 1, so that retries do not meet.
func placeOf(key operator.Key) float64 {
	h := fnv.New32a()
	fmt.Fprint(h, key)
	return float64(h.Sum32()%1000) / 1000
}

// answer is what a pass came to, in the words of the node.
func answer(out operator.Outcome) (kube.Action, error) {
	switch out.Verdict {
	case operator.Succeeded:
		return kube.Action{After: out.After}, nil
	case operator.Gone:
		return kube.None(), nil
	case operator.Failed:
		return kube.Action{After: out.After}, failure(out.Err.Error())
	}
	return kube.None(), out.Err
}

// failure is a failure of a manifest that has been stored with it. What it was made of is not to be seen: that the operator met somebody who
// did not answer, or a conflict, says nothing of this node's API, which has just answered.
type failure string

// Error implements error.
func (f failure) Error() string { return string(f) }
