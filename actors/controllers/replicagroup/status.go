package replicagroup

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/nodeactor/nodeactor/actors/strategy"
)

const (
	// shownMembers is how many replicas the status lists.
	shownMembers = 50
)

// store writes what the kernel or the user wants stored, guarded by the version of the group that it was decided from. The audit follows.
func (p *pass) store(g *Group, d strategy.Durable, audits []strategy.Audit) error {
	next := *g
	next.Status.Conditions = slices.Clone(g.Status.Conditions)
	next.Status.keep(d)
	p.setReconfiguring(&next.Status, d, audits)
	stored, err := p.world.PutStatus(p.ctx, &next)
	if err != nil {
		return err
	}
	p.log.Info("replica group", "group", p.key.String(), "view", d.View().String(), "audits", fmt.Sprint(audits))
	for _, audit := range audits {
		p.audit(stored, d, audit)
	}
	return nil
}

// audit tells as an Event what was stored.
func (p *pass) audit(g *Group, d strategy.Durable, a strategy.Audit) {
	kind := corev1.EventTypeNormal
	switch a.Event {
	case strategy.ReconfigurationTimedOut, strategy.ReconfigurationExhausted, strategy.BurstShed:
		kind = corev1.EventTypeWarning
	}
	text := "realized " + d.Config.String()
	if r, ok := d.Reconfiguration.Get(); ok && a.Event >= strategy.ReconfigurationStarted && a.Event <= strategy.ReconfigurationCancelled {
		text = r.String() + "; " + text
	}
	if a.Forced {
		text += "; forced, the target was not ready"
	}
	if a.Why != "" {
		text += "; " + a.Why
	}
	p.event(kind, a.Event.String(), "%s", text)
}

// event records an Event about the group.
func (p *pass) event(kind, reason, format string, args ...any) {
	p.events.Eventf(&corev1.ObjectReference{
		APIVersion: GroupVersion.String(), Kind: Kind.Name, Namespace: p.key.Namespace, Name: p.key.Name, UID: p.uid,
	}, kind, reason, format, args...)
}

// finish lets go of what has ended, writes down what people see of the group when that has changed, and tells when time alone has the next
// pass.
func (p *pass) finish() (next time.Duration, err error) {
	g, ok, err := p.group()
	if err != nil || !ok || g.Generation != p.generation {
		return 0, err // The change has its own pass.
	}
	pods, err := p.world.Pods(p.ctx, g.UID)
	if err != nil {
		return 0, err
	}
	d, begun := g.durable()
	if err := p.missSizes(d, begun); err != nil {
		return 0, err
	}
	if err := p.show(g, d, begun, pods); err != nil {
		return 0, err
	}
	if err := p.bury(g, pods); err != nil {
		return 0, err
	}
	if begun {
		if err := p.tidy(g, d, pods); err != nil {
			return 0, err
		}
	}
	return p.after(g, d, pods), nil
}

// missSizes tells of a size that was taken away from a group: what it has stays, and nothing new can be made.
func (p *pass) missSizes(d strategy.Durable, begun bool) error {
	if !begun || p.refused != nil {
		return nil
	}
	_, ok, err := p.world.Size(d.Config.Shape.Size)
	if err == nil && !ok {
		p.refused = unknownSize(d.Config.Shape.Size)
	}
	return err
}

// show writes the status if people are to see something else than is stored.
func (p *pass) show(g *Group, d strategy.Durable, begun bool, pods []*corev1.Pod) error {
	next := *g
	s := &next.Status
	s.Conditions = slices.Clone(s.Conditions)
	s.ObservedGeneration = p.generation
	s.Selector = labels.Set{GroupLabel: g.Name}.String()
	s.Replicas, s.ReadyReplicas, s.Members = 0, 0, nil
	for _, pod := range living(pods) {
		s.Replicas++
		if ready(pod) {
			s.ReadyReplicas++
		}
		if len(s.Members) < shownMembers {
			s.Members = append(s.Members, memberOf(g.Name, pod))
		}
	}
	if begun {
		p.showShapes(s, d, pods)
	}
	p.setConditions(s, d, begun, pods)
	if apiequality.Semantic.DeepEqual(g.Status, *s) {
		return nil
	}
	_, err := p.world.PutStatus(p.ctx, &next)
	return err
}

func (p *pass) showShapes(s *Status, d strategy.Durable, pods []*corev1.Pod) {
	s.Ready = fmt.Sprintf("%d/%d", readyOf(pods, d.Config.Shape), d.Config.ReplicationFactor)
	if s.Reconfiguration == nil {
		return
	}
	record := *s.Reconfiguration
	record.Ready = ""
	if r, ok := d.InFlight(); ok {
		record.Ready = fmt.Sprintf("%d/%d", readyOf(pods, r.Target.Shape), r.Target.ReplicationFactor)
	}
	s.Reconfiguration = &record
}

func memberOf(group string, pod *corev1.Pod) Member {
	return Member{
		Name: replicaName(group, pod), Pod: pod.Name, Shape: shapeOf(pod).String(), Reason: pod.Annotations[ReasonAnnotation], Ready: ready(pod),
	}
}

// after is when time alone changes something: not at all for a group at rest.
func (p *pass) after(g *Group, d strategy.Durable, pods []*corev1.Pod) time.Duration {
	next := time.Duration(0)
	within := func(limit time.Duration) {
		if limit = max(limit, time.Millisecond); next == 0 || limit < next {
			next = limit
		}
	}
	r, busy := d.InFlight()
	if busy || d.Burst.Present() || p.refused != nil || p.noRoom != "" {
		within(strategy.DefaultInterval)
	}
	if busy {
		within(r.Deadline.UTC().Sub(p.clock.Now()))
	}
	if d.Schedule.OnRefresh && g.Spec.Schedule != nil {
		within(edge(g, p.Now()))
	}
	for _, pod := range pods {
		if since, _, yes := unplaced(pod); yes && p.noRoom == "" {
			within(max(unplacedGrace-p.clock.Now().Sub(since), time.Second))
		}
	}
	return next
}
