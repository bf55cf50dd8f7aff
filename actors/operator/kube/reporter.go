package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/record"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/hotloop"
	"github.com/nodeactor/nodeactor/actors/operator/engine"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// Waits of the reporter.
const (
	// reportBeat is the longest silence of the reporter's job before it counts as hanging.
	reportBeat = 90 * time.Second
	// reportLook is the longest it waits before it looks whether a pause is over; reportWrite bounds one write of conditions.
	reportLook, reportWrite = time.Second, 5 * time.Second
	// reportPace is the rest after conditions were written: a reconciler that panics all the time must not cost a write each time.
	reportPace = time.Second
	// reportIdle is the longest it waits when nobody complains.
	reportIdle = 30 * time.Second
	// reportRetryFirst and reportRetryLast bound the doubling wait after a failed write.
	reportRetryFirst, reportRetryLast = time.Second, time.Minute
)

// reporterComponent is who Events about reconcilers come from.
const reporterComponent = "nodeactor-supervisor"

// Reporter tells on objects how their reconcilers do: by Events, and by conditions where the kind has them. Faults come from the tree,
// successes from the passes, pauses from the breaker. It is shared by all controllers and outlives its actor. A nil Reporter tells
// nothing.
type Reporter struct {
	cache    *cache.Cache
	metadata metadata.Interface
	events   record.EventRecorder
	clock    Clock
	log      *slog.Logger
	breaker  *Breaker
	metrics  *Metrics

	// complaining is how many objects have complaints, for a quick look.
	complaining atomic.Int64
	// inherited tells that it is known what an earlier life of the process left.
	inherited atomic.Bool

	mu          sync.Mutex
	controllers map[string]*Controller
	patients    map[string]*patient
	// early are the controllers that did well by an object before it was known what an earlier life of the process left there; nil once it is.
	early map[string][]string
	// asked holds a token when an object's conditions are to be looked at.
	asked chan struct{}
}

// patient is an object with complaints, by the key it is stored at.
type patient struct {
	uid        types.UID
	complaints map[string]*complaint
	// told are the conditions as they were last written, by type; dirty that they may have to be written again.
	told  map[string]condition
	dirty bool
}

// NewReporter makes a reporter. The breaker tells it of pauses from now on. meta writes conditions and events records Events; either may
// be nil, and then nobody is told that way.
func NewReporter(deps Deps, meta metadata.Interface, events *Recorder) *Reporter {
	r := &Reporter{
		cache: deps.Cache, metadata: meta, events: events.For(reporterComponent), clock: deps.Clock, log: deps.Log, breaker: deps.Breaker, metrics: deps.Metrics,
		controllers: map[string]*Controller{}, patients: map[string]*patient{}, early: map[string][]string{}, asked: make(chan struct{}, 1),
	}
	if r.breaker != nil {
		r.breaker.tripped = r.trippedOver
	}
	return r
}

// Spec is the reporter's actor. It belongs before the controllers, as their sibling.
func (r *Reporter) Spec() supervision.Spec {
	spec := catalog.Row("reporter")
	spec.Start = func() supervision.Handler { return &reporting{reporter: r} }
	return spec
}

// reporting is the actor.
type reporting struct {
	reporter *Reporter
	unwatch  func()
}

// Receive implements supervision.Handler.
func (a *reporting) Receive(ctx supervision.Context, msg any) error {
	switch msg := msg.(type) {
	case supervision.Started:
		base := ctx.Path()[:strings.LastIndexByte(ctx.Path(), '/')+1]
		a.unwatch = ctx.System().Watch(func(c supervision.Change) { a.reporter.changed(base, c) })
		ctx.Go(supervision.Job{Name: "report", BeatWithin: reportBeat, Run: func(ctx context.Context, beat func()) (any, error) {
			return nil, a.reporter.run(ctx, beat)
		}})
	case supervision.Stopping:
		if a.unwatch != nil {
			a.unwatch()
		}
	case supervision.JobDone:
		if ctx.Context().Err() == nil {
			return fmt.Errorf("cannot report on reconcilers: %w", msg.Err)
		}
	}
	return nil
}

// serve makes a controller known, before its tree starts.
func (r *Reporter) serve(c *Controller) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.controllers[c.Name] = c
}

// changed takes a change of the tree; it concerns members of the pools of manifests beside the reporter.
func (r *Reporter) changed(base string, c supervision.Change) {
	rest, ok := strings.CutPrefix(c.Path, base)
	if !ok || !waits(c.To) || c.Fault == nil {
		return
	}
	parts := strings.Split(rest, "/")
	if len(parts) != 3 || parts[1] != engine.PoolID {
		return
	}
	r.complain(parts[0], ParseKey(parts[2]), func(about *cache.Meta, k *complaint) {
		k.fault, k.parked, k.next, k.stuck, k.inherited = c.Fault, c.To != core.BackingOff, c.NextTry, 0, nil
		k.faults++
		_, message := k.says()
		event := eventBackOff
		if k.parked {
			event = eventCrashLoop
		}
		r.event(about, corev1.EventTypeWarning, event, "Reconciler %s: %s", parts[0], message)
	})
}

// stuck takes a manifest of which so many passes hang that no further one begins.
func (r *Reporter) stuck(controller string, key Key, passes int) {
	if r == nil {
		return
	}
	r.complain(controller, key, func(about *cache.Meta, k *complaint) {
		k.stuck, k.parked, k.inherited = passes, true, nil
		_, message := k.says()
		r.event(about, corev1.EventTypeWarning, eventCrashLoop, "Reconciler %s: %s", controller, message)
	})
}

// failed takes a pass that ended in an error, the failures-th in a row.
func (r *Reporter) failed(controller string, key Key, failures int, err error) {
	if r == nil || failures < failuresTold || isOutage(err) && !errors.Is(err, context.DeadlineExceeded) {
		return
	}
	r.complain(controller, key, func(about *cache.Meta, k *complaint) {
		if k.failure == nil {
			r.event(about, corev1.EventTypeWarning, eventFailing, "Reconciler %s failed %d times in a row: %s", controller, failures, shorten(err.Error()))
		}
		k.failure, k.failures = err, failures
	})
}

// well takes a pass that ended well: what was wrong is over.
func (r *Reporter) well(controller string, key Key) {
	if r == nil || r.complaining.Load() == 0 && r.inherited.Load() {
		return
	}
	about := r.about(controller, key)
	if about == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.early != nil {
		r.early[about.Key] = append(r.early[about.Key], controller)
	}
	p := r.patients[about.Key]
	if p == nil || p.complaints[controller] == nil || p.complaints[controller].healthy() {
		return
	}
	p.complaints[controller] = &complaint{trip: p.complaints[controller].trip}
	p.dirty = true
	r.event(about, corev1.EventTypeNormal, eventRecovered, "Reconciler %s does well again", controller)
	r.ask()
}

// trippedOver takes a trip of the breaker.
func (r *Reporter) trippedOver(t hotloop.Trip) {
	r.metrics.tripped(t)
	r.log.Warn("a reconciler writes in circles and pauses", "reason", t.Reason.String(), "writer", t.Writer.String(), "other", t.Other.String(),
		"object", t.Object.String(), "until", t.Until, "trips", t.Strikes)
	r.complain(t.Writer.Name, ParseKey(t.Writer.Manifest), func(about *cache.Meta, k *complaint) {
		k.trip = &t
		r.event(about, corev1.EventTypeWarning, eventHotLoop, "%s: %s", t.Reason, aboutTrip(&t))
	})
}

// released takes the end of a pause.
func (r *Reporter) released(t hotloop.Trip) {
	r.complain(t.Writer.Name, ParseKey(t.Writer.Manifest), func(about *cache.Meta, k *complaint) {
		k.trip = nil
		r.event(about, corev1.EventTypeNormal, eventReleased, "Reconciler %s goes on after its pause", t.Writer.Name)
	})
}

// complain changes what one reconciler of an object complains of. An object that is gone has nothing to be told on.
func (r *Reporter) complain(controller string, key Key, change func(about *cache.Meta, k *complaint)) {
	about := r.about(controller, key)
	if about == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.patient(about)
	if p.complaints[controller] == nil {
		p.complaints[controller] = &complaint{}
	}
	change(about, p.complaints[controller])
	p.dirty = true
	r.ask()
}

// patient is the record of an object; the lock is held.
func (r *Reporter) patient(about *cache.Meta) *patient {
	p := r.patients[about.Key]
	if p == nil || p.uid != about.UID {
		p = &patient{uid: about.UID, complaints: map[string]*complaint{}, told: map[string]condition{}}
		r.patients[about.Key] = p
		r.counted()
	}
	return p
}

// about finds the object that a key of a controller stands for; nil when there is none.
func (r *Reporter) about(controller string, key Key) *cache.Meta {
	r.mu.Lock()
	c := r.controllers[controller]
	r.mu.Unlock()
	if c == nil {
		return nil
	}
	return c.about(r.cache, key)
}

func (r *Reporter) event(about *cache.Meta, kind, reason, format string, args ...any) {
	r.events.Eventf(&corev1.ObjectReference{
		APIVersion: about.APIVersion, Kind: about.Kind, Namespace: about.Namespace, Name: about.Name, UID: about.UID,
	}, kind, reason, format, args...)
}

func (r *Reporter) ask() {
	select {
	case r.asked <- struct{}{}:
	default:
	}
}

// run writes conditions until the context ends.
func (r *Reporter) run(ctx context.Context, beat func()) error {
	if err := r.inherit(ctx, beat); err != nil {
		return err
	}
	for retry := time.Duration(0); ctx.Err() == nil; {
		beat()
		r.rest(ctx, retry)
		r.releaseAll()
		keys := r.dirty()
		switch {
		case len(keys) == 0:
			retry = 0
		case r.tellAll(ctx, keys, beat):
			retry = 0
			_ = r.clock.Sleep(ctx, reportPace)
		default:
			retry = min(max(2*retry, reportRetryFirst), reportRetryLast)
		}
	}
	return ctx.Err()
}

// rest waits for something to tell. After a failed write it waits that out, whatever comes in.
func (r *Reporter) rest(ctx context.Context, retry time.Duration) {
	if retry > 0 {
		_ = r.clock.Sleep(ctx, retry)
		return
	}
	wait := reportIdle
	if r.complaining.Load() > 0 {
		wait = reportLook
	}
	quiet, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	select {
	case <-r.asked:
	case <-quiet.Done():
	}
}

// releaseAll ends the pauses that are over and looks who never rests.
func (r *Reporter) releaseAll() {
	if r.breaker == nil {
		return
	}
	for _, trip := range r.breaker.release() {
		r.released(trip)
	}
	r.breaker.turned(func(controller string, continuous bool, seconds int) {
		if continuous {
			r.log.Warn("a controller writes in nearly every second", "controller", controller, "busy_seconds", seconds, "of", 60)
			return
		}
		r.log.Info("a controller does not write in nearly every second any more", "controller", controller, "busy_seconds", seconds)
	})
}

// tellAll brings the conditions of objects up to date; false after the first write that failed.
func (r *Reporter) tellAll(ctx context.Context, keys []string, beat func()) bool {
	for _, key := range keys {
		beat()
		if err := r.tell(ctx, key); err != nil {
			r.log.Debug("conditions could not be written and are tried again", "object", key, "cause", err)
			return false
		}
	}
	return true
}

// dirty lists the objects whose conditions may have to be written, and those that are gone, to be forgotten.
func (r *Reporter) dirty() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var keys []string
	for key, p := range r.patients {
		if p.dirty || r.cache.MetaByKey(key) == nil {
			keys = append(keys, key)
		}
	}
	return keys
}

// tell writes what the conditions of one object should say, if they do not say it yet.
func (r *Reporter) tell(ctx context.Context, key string) error {
	about := r.cache.MetaByKey(key)
	r.mu.Lock()
	p := r.patients[key]
	if p == nil || about == nil || about.UID != p.uid {
		r.forget(key)
		r.mu.Unlock()
		return nil
	}
	p.dirty = false
	changed, moved := p.news()
	r.mu.Unlock()
	if err := r.write(ctx, about, changed, moved); err != nil {
		r.mu.Lock()
		p.dirty = true
		r.mu.Unlock()
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range changed {
		p.told[c.Type] = c
	}
	if !p.dirty && p.over() {
		r.forget(key)
	}
	return nil
}

// forget drops a patient; the lock is held.
func (r *Reporter) forget(key string) {
	delete(r.patients, key)
	r.counted()
}

// counted notes how many objects have complaints; the lock is held.
func (r *Reporter) counted() {
	r.complaining.Store(int64(len(r.patients)))
	r.metrics.complaints(len(r.patients))
}

// news are the conditions that differ from what was told, and which of them change their status. Good news alone is none.
func (p *patient) news() (changed []condition, moved map[string]bool) {
	moved = map[string]bool{}
	health, hot := summary(p.complaints)
	for _, c := range []condition{health, hot} {
		told, ever := p.told[c.Type]
		good := c.Reason == ReasonRecovered || c.Reason == ReasonReleased
		if told == c || !ever && good {
			continue
		}
		changed, moved[c.Type] = append(changed, c), told.Status != c.Status
	}
	return changed, moved
}

func (p *patient) over() bool {
	for _, k := range p.complaints {
		if !k.over() {
			return false
		}
	}
	return true
}

// write patches the status of an object that is still the one it was.
func (r *Reporter) write(ctx context.Context, about *cache.Meta, changed []condition, moved map[string]bool) error {
	if len(changed) == 0 || r.metadata == nil {
		return nil
	}
	if kind, ok := r.custom(about); ok {
		return r.writeCustom(ctx, kind, about, changed, moved)
	}
	if !hasConditions(about) {
		return nil
	}
	patch, err := conditionsPatch(about, changed, moved, metav1.NewTime(r.clock.Now()))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, reportWrite)
	defer cancel()
	_, err = r.metadata.Resource(about.Resource()).Namespace(about.Namespace).Patch(
		ctx, about.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: reporterComponent}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsInvalid(err) {
		return nil // gone, replaced by another of the same name, or not to be told on; retrying would not help
	}
	return err
}

// inherit takes over what an earlier life of the process has left on objects, so that it is cleared once all is well.
func (r *Reporter) inherit(ctx context.Context, beat func()) error {
	for r.synced(ctx) != nil {
		beat()
		if r.clock.Sleep(ctx, reportRetryFirst) != nil {
			return ctx.Err()
		}
	}
	for kind := range conditioned {
		beat()
		r.inheritKind(kind)
	}
	for _, kind := range r.customKinds() {
		beat()
		r.inheritAll(kind)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.early = nil
	r.inherited.Store(true)
	return ctx.Err()
}

// synced waits until the cache shows all that was written before, for syncDeadline at most.
func (r *Reporter) synced(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, syncDeadline)
	defer cancel()
	return r.cache.Sync(ctx)
}

// inheritKind looks at all objects of a kind; no reconciler is about single pods.
func (r *Reporter) inheritKind(name schema.GroupKind) {
	kind, ok := cache.KindNamed(name)
	if !ok || name.Kind == "Pod" {
		return
	}
	r.inheritAll(kind)
}

func (r *Reporter) inheritAll(kind cache.Kind) {
	for _, at := range r.cache.Names(kind) {
		if object, ok := r.cache.Record(kind, at.Namespace, at.Name); ok && mentionsOurs(object.Value) {
			r.inheritFrom(object)
		}
	}
}

// mentionsOurs is a quick look at an encoded object, which few will pass.
func mentionsOurs(encoded []byte) bool {
	return bytes.Contains(encoded, []byte(ConditionHealthy)) || bytes.Contains(encoded, []byte(ConditionHotLoop))
}

// inheritFrom notes bad conditions that an earlier life of the process wrote and did not take back. This life knows better.
func (r *Reporter) inheritFrom(object cache.Record) {
	conditions, about := storedConditions(object), r.cache.MetaByKey(object.Key)
	if about == nil || len(conditions) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.patients[object.Key] != nil {
		return
	}
	for _, c := range conditions {
		switch {
		case c.Type == ConditionHealthy && c.Status == corev1.ConditionFalse:
			p := r.patient(about)
			p.told[c.Type], p.dirty = c, true
			r.accuse(p, c, r.early[object.Key])
		case c.Type == ConditionHotLoop && c.Status == corev1.ConditionTrue:
			p := r.patient(about)
			p.told[c.Type], p.dirty = c, true
		}
	}
	r.ask()
}

// accuse makes the controllers that a condition names complain of what it says, but for those that have done well since; the lock is held.
func (r *Reporter) accuse(p *patient, c condition, well []string) {
	for name, message := range accused(c.Message) {
		if r.controllers[name] != nil && !slices.Contains(well, name) {
			p.complaints[name] = &complaint{inherited: &condition{Reason: c.Reason, Message: message}}
		}
	}
}
