package scheduler

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/nodeactor/nodeactor/actors/scheduler/placement"
	"github.com/nodeactor/nodeactor/supervision"
)

// feedJob is the name of the job that follows the source.
const feedJob = "feed"

// turnDue asks the actor for a turn: something came in, work is left, or time has passed.
type turnDue struct{}

// scheduler is the actor. Everything in it is touched in Receive only, but for the inbox and the lanes.
type scheduler struct {
	deps    Deps
	cluster *placement.Cluster
	queue   *queue
	inbox   *inbox
	binds   *lane
	reports *lane
	evicts  *lane
	events  *lane

	// retainted is the version of each node whose taints have last been written.
	retainted map[string]string
	// mistainted are the nodes for which that failed.
	mistainted map[string]bool
	// helped is set in a turn by a change that may let waiting pods fit, related by one that can only help those that look at other pods.
	helped, related bool

	now      time.Time // of this turn
	placedAt time.Time // when a pod was last given a node
	reviewed time.Time
	alarm    func() // cancels the timer that is set, if any
}

func newScheduler(deps Deps) *scheduler {
	if deps.Name == "" {
		deps.Name = defaultName
	}
	if deps.NodeClient == nil {
		deps.NodeClient = deps.Client
	}
	s := &scheduler{deps: deps, queue: newQueue(), inbox: &inbox{}, retainted: map[string]string{}, mistainted: map[string]bool{}}
	s.cluster = placement.NewCluster(s.nodeReady, deps.Source.Namespace)
	s.binds = &lane{name: "bind", parallel: bindParallel, deliver: s.inbox.put}
	s.reports = &lane{name: "report", parallel: reportParallel, deliver: s.inbox.put}
	s.evicts = &lane{name: "evict", parallel: evictParallel, deliver: s.inbox.put}
	s.events = &lane{name: "event", parallel: eventParallel, deliver: s.inbox.put}
	return s
}

func (s *scheduler) nodeReady(node *v1.Node) bool {
	if s.deps.NodeReady == nil {
		return placement.ConditionReady(node)
	}
	return s.deps.NodeReady(node, s.now)
}

// Receive implements supervision.Handler.
func (s *scheduler) Receive(ctx supervision.Context, msg any) error {
	switch m := msg.(type) {
	case supervision.Started:
		s.start(ctx)
	case supervision.JobDone:
		if m.Name == feedJob {
			return fmt.Errorf("cannot follow nodes and pods: %w", m.Err)
		}
		s.startLanes(ctx)
	case turnDue:
		s.turn(ctx)
	}
	return nil
}

func (s *scheduler) start(ctx supervision.Context) {
	self := ctx.Self()
	s.inbox.wake = func() { ctx.Send(self, turnDue{}) }
	s.now = ctx.Clock().Now()
	ctx.Go(supervision.Job{Name: feedJob, Endless: true, Run: func(jobCtx context.Context, _ func()) (any, error) {
		return nil, follow(jobCtx, s.deps.Source, s.inbox.put)
	}})
}

// turn is one pass: take what came in, place what can be placed, have it written, and see to it that the next pass comes.
func (s *scheduler) turn(ctx supervision.Context) {
	s.now = ctx.Clock().Now()
	for _, item := range s.inbox.take() {
		s.absorb(item)
	}
	s.review()
	s.moveOn()
	s.placeBatch(ctx)
	s.startLanes(ctx)
	s.setAlarm(ctx)
	if s.queue.next() != nil && s.cluster.Nodes() > 0 {
		ctx.Send(ctx.Self(), turnDue{})
	}
}

// review judges readiness anew when pods are about to be placed, and while nodes are not ready.
func (s *scheduler) review() {
	if len(s.queue.entries) == 0 && !s.watchful() || s.now.Sub(s.reviewed) < reviewFresh {
		return
	}
	s.reviewed = s.now
	changed, helpful := s.cluster.Review()
	for _, n := range changed {
		s.keepTaints(n)
	}
	s.retryTaints()
	s.helped = s.helped || helpful
}

// watchful tells whether something about the nodes may change with time alone.
func (s *scheduler) watchful() bool { return s.cluster.Unready()+len(s.mistainted) > 0 }

// moveOn activates the pods for which something may have changed.
func (s *scheduler) moveOn() {
	switch {
	case s.helped:
		s.queue.release(s.now, nil)
	case s.related:
		s.queue.release(s.now, (*entry).relates)
	}
	s.helped, s.related = false, false
	s.queue.ripen(s.now)
}

// placeBatch places active pods until none is left or the turn has taken its share of time. Without nodes nothing is decided.
func (s *scheduler) placeBatch(ctx supervision.Context) {
	if s.cluster.Nodes() == 0 {
		return
	}
	started := ctx.Clock().Now()
	for range turnPods {
		e := s.queue.next()
		if e == nil || ctx.Clock().Now().Sub(started) > turnBudget {
			return
		}
		s.place(e)
	}
}

func (s *scheduler) place(e *entry) {
	decision := s.cluster.Place(e.demand)
	if decision.Node == "" {
		s.makeRoom(e, decision)
		return
	}
	s.placedAt = s.now
	s.cluster.Assume(e.demand, decision.Node)
	s.queue.move(e, binding)
	s.bind(e.pod(), decision.Node)
}

// makeRoom has pods of lower priority evicted when that lets the pod in. Either way it waits, and is told why.
func (s *scheduler) makeRoom(e *entry, refusal placement.Decision) {
	eviction, ok := s.cluster.Preempt(e.demand, s.deps.Source.Guarded)
	s.queue.failed(e, s.now, waiting)
	if !ok {
		s.report(e.pod(), refusal.Message+" "+refusal.Preemption, "")
		return
	}
	// As soon as the last victim has gone the pod is to be tried, not after a back-off.
	e.notBefore = s.now
	s.report(e.pod(), refusal.Message, eviction.Node)
	for _, victim := range eviction.Victims {
		s.evict(victim, e.pod(), eviction.Node)
	}
}

// startLanes lets jobs take up what waits. Events give way to bindings, but not for ever.
func (s *scheduler) startLanes(ctx supervision.Context) {
	s.binds.start(ctx)
	s.reports.start(ctx)
	s.evicts.start(ctx)
	if in, ok := s.eventsIn(ctx.Clock().Now()); ok && in <= 0 {
		s.events.start(ctx)
	}
}

// eventsIn is how long the Events that wait still give way; false when none wait for their turn.
func (s *scheduler) eventsIn(now time.Time) (time.Duration, bool) {
	backlog, since := s.events.waiting()
	if backlog == 0 {
		return 0, false
	}
	return min(eventQuiet-now.Sub(s.placedAt), eventLinger-now.Sub(since)), true
}

// setAlarm sets the one timer for what will be due if nothing else happens; with nothing pending and all nodes ready there is none.
func (s *scheduler) setAlarm(ctx supervision.Context) {
	if s.alarm != nil {
		s.alarm()
		s.alarm = nil
	}
	if in, ok := s.dueIn(); ok {
		s.alarm = ctx.After(in, turnDue{})
	}
}

// dueIn is how long the actor may sleep if nothing happens; false when for ever.
func (s *scheduler) dueIn() (time.Duration, bool) {
	in, ok := s.queue.wakeIn(s.now)
	sooner := func(d time.Duration) {
		if !ok || d < in {
			in, ok = d, true
		}
	}
	if s.watchful() {
		sooner(reviewEvery)
	}
	if wait, waiting := s.eventsIn(s.now); waiting && wait > 0 {
		sooner(wait)
	}
	return in, ok
}
