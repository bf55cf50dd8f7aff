package pod

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodeactor/nodeactor/kubelet/pod/core"
	"github.com/nodeactor/nodeactor/supervision"
)

// queued is an Event that has not been sent.
type queued struct {
	act core.Action
	at  time.Time
}

const maxEventMessage = 1024

func (a *Actor) enqueue(act core.Action, now time.Time) {
	if len(a.events) >= maxQueuedEvents {
		a.events = a.events[1:]
	}
	a.events = append(a.events, queued{act, now})
}

// sendEvents sends what is queued, in order, one job at a time. What the API refuses is dropped.
func (a *Actor) sendEvents(ctx supervision.Context) {
	if a.sending || len(a.events) == 0 {
		return
	}
	a.sending = true
	batch, p := a.events, a.pod
	a.events = nil
	a.job(ctx, "events", apiDeadline, func(c context.Context) apply {
		var failed error
		for _, q := range batch {
			if err := a.env.send(c, a.env.event(p, q)); err != nil {
				failed = err
			}
		}
		return func(a *Actor, ctx supervision.Context, _ time.Time) {
			a.sending = false
			if failed != nil {
				ctx.Log().Debug("events not sent", "error", failed)
			}
		}
	})
}

func (e *Env) event(p *v1.Pod, q queued) *v1.Event {
	ref := v1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion}
	if name := q.act.Container; name != "" {
		ref.FieldPath = "spec." + listOf(p, name) + "{" + name + "}"
	}
	return e.Event(ref, p.Namespace, q.act.Type, q.act.Reason, q.act.Message, q.at)
}

func listOf(p *v1.Pod, container string) string {
	for i := range p.Spec.InitContainers {
		if p.Spec.InitContainers[i].Name == container {
			return "initContainers"
		}
	}
	for i := range p.Spec.EphemeralContainers {
		if p.Spec.EphemeralContainers[i].Name == container {
			return "ephemeralContainers"
		}
	}
	return "containers"
}

// Event builds an Event of this node's kubelet.
func (e *Env) Event(about v1.ObjectReference, namespace, eventType, reason, message string, at time.Time) *v1.Event {
	if len(message) > maxEventMessage {
		message = message[:maxEventMessage]
	}
	t := metav1.NewTime(at.Truncate(time.Second))
	return &v1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s.%x", about.Name, at.UnixNano()+e.eventSeq.Add(1))},
		InvolvedObject: about, Type: eventType, Reason: reason, Message: message, FirstTimestamp: t, LastTimestamp: t, Count: 1,
		Source: v1.EventSource{Component: "kubelet", Host: e.NodeName}, ReportingController: "kubelet", ReportingInstance: e.NodeName,
	}
}

// send writes an Event, or counts up the one it repeats.
func (e *Env) send(ctx context.Context, event *v1.Event) error {
	result, err := e.Events.EventCorrelate(event)
	if err != nil || result.Skip {
		return err
	}
	events := e.Client.CoreV1().Events(event.Namespace)
	var written *v1.Event
	if result.Event.Count > 1 && len(result.Patch) > 0 {
		written, err = events.Patch(ctx, result.Event.Name, types.StrategicMergePatchType, result.Patch, metav1.PatchOptions{})
	}
	if written == nil {
		result.Event.ResourceVersion = ""
		written, err = events.Create(ctx, result.Event, metav1.CreateOptions{})
	}
	if err == nil {
		e.Events.UpdateState(written)
	}
	return err
}

// Send writes an Event of the kubelet about something else than a pod.
func (e *Env) Send(ctx context.Context, event *v1.Event) error { return e.send(ctx, event) }
