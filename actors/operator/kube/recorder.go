package kube

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"

	"github.com/nodeactor/nodeactor/supervision"
)

// Limits of event recording.
const (
	// eventQueue is how many events wait to be written; more are dropped and counted.
	eventQueue = 4096
	// eventWrite bounds one write of an event.
	eventWrite = 5 * time.Second
)

// Recorder writes Events in the background: it never blocks, never fails its caller, and keeps quiet about an object that keeps
// repeating itself (25 events at once, then one in five minutes, similar ones folded into a count, as upstream does).
type Recorder struct {
	client     corev1client.EventsGetter
	clock      Clock
	log        *slog.Logger
	queue      chan *corev1.Event
	correlator *record.EventCorrelator
}

// NewRecorder makes a recorder. Start writes what it gathers.
func NewRecorder(client corev1client.EventsGetter, clock Clock, log *slog.Logger) *Recorder {
	return &Recorder{
		client: client, clock: clock, log: log,
		queue:      make(chan *corev1.Event, eventQueue),
		correlator: record.NewEventCorrelator(passiveClock{clock}),
	}
}

// passiveClock is a Clock in the shape the correlator wants.
type passiveClock struct{ Clock }

// Since implements clock.PassiveClock.
func (c passiveClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// For gives the recorder in the name of one component. A nil Recorder gives one that drops everything.
func (r *Recorder) For(component string) record.EventRecorder {
	return componentRecorder{recorder: r, component: component}
}

// Start writes gathered events in a guarded goroutine of its own until the context ends. A panic costs the event it met.
func (r *Recorder) Start(ctx context.Context) *supervision.Group {
	group := supervision.NewGroup(ctx, "events", nil)
	group.Go("recorder", func(ctx context.Context) error {
		for ctx.Err() == nil {
			guarded := supervision.NewGroup(ctx, "events", r.panicked)
			guarded.Go("writer", r.run)
			_ = guarded.Wait()
		}
		return ctx.Err()
	})
	return group
}

func (r *Recorder) panicked(fault supervision.Fault) {
	r.log.Error("recording an event panicked", "fault", fault.Error(), "stack", string(fault.Stack))
}

func (r *Recorder) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event := <-r.queue:
			r.write(ctx, event)
		}
	}
}

func (r *Recorder) write(ctx context.Context, event *corev1.Event) {
	result, err := r.correlator.EventCorrelate(event)
	if err != nil || result.Skip {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, eventWrite)
	defer cancel()
	stored, err := r.store(ctx, result)
	if err != nil {
		r.log.Debug("an event was not recorded", "object", event.InvolvedObject.Name, "reason", event.Reason, "cause", err)
		return
	}
	r.correlator.UpdateState(stored)
}

// store counts up an event that was written before, or writes a new one.
func (r *Recorder) store(ctx context.Context, result *record.EventCorrelateResult) (*corev1.Event, error) {
	event := result.Event
	events := r.client.Events(event.Namespace)
	if event.Count > 1 {
		stored, err := events.Patch(ctx, event.Name, types.StrategicMergePatchType, result.Patch, metav1.PatchOptions{})
		if err == nil || !apierrors.IsNotFound(err) {
			return stored, err
		}
	}
	event.ResourceVersion = ""
	return events.Create(ctx, event, metav1.CreateOptions{})
}

type componentRecorder struct {
	recorder  *Recorder
	component string
}

// Event implements record.EventRecorder.
func (c componentRecorder) Event(object runtime.Object, eventtype, reason, message string) {
	c.emit(object, nil, eventtype, reason, message)
}

// Eventf implements record.EventRecorder.
func (c componentRecorder) Eventf(object runtime.Object, eventtype, reason, format string, args ...any) {
	c.emit(object, nil, eventtype, reason, fmt.Sprintf(format, args...))
}

// AnnotatedEventf implements record.EventRecorder.
func (c componentRecorder) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, format string, args ...any) {
	c.emit(object, annotations, eventtype, reason, fmt.Sprintf(format, args...))
}

func (c componentRecorder) emit(object runtime.Object, annotations map[string]string, eventtype, reason, message string) {
	if c.recorder == nil {
		return
	}
	about, err := reference.GetReference(scheme.Scheme, object)
	if err != nil {
		c.recorder.log.Debug("an event about an unknown object was dropped", "reason", reason, "cause", err)
		return
	}
	select {
	case c.recorder.queue <- c.event(about, annotations, eventtype, reason, message):
	default:
		c.recorder.log.Debug("an event was dropped, too many wait", "object", about.Name, "reason", reason)
	}
}

func (c componentRecorder) event(about *corev1.ObjectReference, annotations map[string]string, eventtype, reason, message string) *corev1.Event {
	now := c.recorder.clock.Now()
	namespace := about.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%v.%x", about.Name, now.UnixNano()), Namespace: namespace, Annotations: annotations,
		},
		InvolvedObject: *about, Reason: reason, Message: message, Type: eventtype, Count: 1,
		FirstTimestamp: metav1.NewTime(now), LastTimestamp: metav1.NewTime(now),
		Source:              corev1.EventSource{Component: c.component},
		ReportingController: c.component,
	}
}
