package pod

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/nodeactor/nodeactor/kubelet/images"
	"github.com/nodeactor/nodeactor/kubelet/pod/core"
	"github.com/nodeactor/nodeactor/kubelet/runtime"
	"github.com/nodeactor/nodeactor/kubelet/volumes"
	"github.com/nodeactor/nodeactor/supervision"
)

// Actor is the actor of one pod; see the package documentation.
type Actor struct {
	env *Env
	uid string

	m       *core.Machine // nil until what the runtime has is known
	pod     *v1.Pod       // the newest version
	removed bool
	reject  *core.Rejection

	paths      map[string]string       // where the volumes are
	images     map[string]images.Image // by container
	pulls      map[string]pull         // by container
	knownAt    map[string]time.Time    // by container ID: since when the actor knows it
	inspecting map[string]bool         // by container ID
	sandboxAt  time.Time

	status  statusWriter
	events  []queued
	sending bool

	refreshing, refreshSet bool
	leaveCancels           []context.CancelFunc // jobs that are pointless once the pod stops
	wakeAt                 time.Time
	cancelWake             func()
	told                   bool
}

// pull is a pull that has not been answered yet.
type pull struct {
	req PullRequest
	at  time.Time
}

// New makes the actor of the pod uid, which must be in the table.
func New(env *Env, uid string) *Actor {
	return &Actor{env: env, uid: uid, paths: map[string]string{}, images: map[string]images.Image{}, pulls: map[string]pull{},
		knownAt: map[string]time.Time{}, inspecting: map[string]bool{}}
}

// NewRejected makes the actor of a pod that this node refuses: nothing of it is ever made.
func NewRejected(env *Env, uid string, r core.Rejection) *Actor {
	a := New(env, uid)
	a.reject = &r
	return a
}

// apply is what a job hands back: a change of the actor's state, made in Receive.
type apply func(a *Actor, ctx supervision.Context, now time.Time)

// Receive handles one message.
func (a *Actor) Receive(ctx supervision.Context, msg any) error {
	now := ctx.Clock().Now()
	switch msg := msg.(type) {
	case supervision.Started:
		return a.begin(ctx)
	case supervision.Stopping:
		return nil
	case supervision.JobDone:
		if f, ok := msg.Value.(apply); ok {
			f(a, ctx, now)
		}
	case Update:
		a.update(msg.Pod)
	case Removed:
		a.removed = true
		if a.m != nil {
			a.m.PodRemoved()
		}
	case Observed:
		a.observed(ctx, msg, now)
	case Exited:
		a.inspect(ctx, msg.ID)
	case PullDone:
		a.pulled(msg, now)
	case again:
		return a.begin(ctx)
	case refresh:
		a.refreshSet = false
		a.refreshVolumes(ctx)
	case tick:
		a.wakeAt = time.Time{}
	}
	a.drive(ctx, now)
	return nil
}

func (a *Actor) update(p *v1.Pod) {
	if p.UID != a.pod.UID {
		return
	}
	a.pod = p
	a.status.seen(p)
	if a.m != nil {
		a.m.PodUpdated(p)
	}
}

// begin finds out what the runtime has of the pod, then builds the machine.
func (a *Actor) begin(ctx supervision.Context) error {
	p, ok := a.env.Table.Get(a.uid)
	if !ok {
		a.tellGone(ctx)
		return nil
	}
	a.pod = p
	a.status.seen(p)
	rec, first := a.env.Table.begin(a.uid)
	if first && rec == nil {
		a.build(ctx, adopted{}, ctx.Clock().Now())
		return nil
	}
	a.job(ctx, "adopt", adoptDeadline, func(c context.Context) apply {
		found, err := a.find(c, p, rec, first)
		return func(a *Actor, ctx supervision.Context, now time.Time) {
			if err != nil {
				ctx.Log().Warn("cannot look for what is left of the pod", "pod", p.Namespace+"/"+p.Name, "error", err)
				ctx.After(retryAdopt, again{})
				return
			}
			a.build(ctx, found, now)
		}
	})
	return nil
}

// build makes the machine of what was found.
func (a *Actor) build(ctx supervision.Context, found adopted, now time.Time) {
	a.m = core.New(a.pod, a.env.Host().IPs, now)
	if a.removed {
		a.m.PodRemoved()
	}
	if a.reject != nil {
		a.m.PodRejected(*a.reject)
	}
	if found.record != nil {
		a.sandboxAt = found.record.Sandbox.CreatedAt
		a.m.SandboxFound(!found.record.Ready, a.sandboxAt, found.ips, found.runs)
		for _, c := range found.record.Containers {
			a.knownAt[c.ID] = now
		}
	}
	a.drive(ctx, now)
}

// drive lets the machine decide until it wants nothing more, and makes the outcome known.
func (a *Actor) drive(ctx supervision.Context, now time.Time) {
	if a.m == nil {
		return
	}
	var wake time.Time
	for {
		actions, at := a.m.Step(now)
		wake = at
		if len(actions) == 0 {
			break
		}
		for _, act := range actions {
			a.execute(ctx, act, now)
		}
	}
	if a.m.Stopping() {
		a.cancelPreparations()
	}
	wake = a.repeatPulls(ctx, now, wake)
	wake = a.publish(ctx, now, wake)
	a.sendEvents(ctx)
	a.setWake(ctx, now, wake)
	a.setRefresh(ctx)
	if a.m.Done() {
		a.tellGone(ctx)
	}
}

func (a *Actor) tellGone(ctx supervision.Context) {
	if !a.told {
		a.told = true
		ctx.Send(a.env.Owner(), Gone{a.uid})
	}
}

func (a *Actor) setWake(ctx supervision.Context, now, at time.Time) {
	if at.Equal(a.wakeAt) {
		return
	}
	if a.cancelWake != nil {
		a.cancelWake()
		a.cancelWake = nil
	}
	a.wakeAt = at
	if !at.IsZero() {
		a.cancelWake = ctx.After(max(at.Sub(now), time.Millisecond), tick{})
	}
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// job runs work with a deadline and applies what it hands back.
func (a *Actor) job(ctx supervision.Context, name string, deadline time.Duration, work func(context.Context) apply) {
	ctx.Go(supervision.Job{Name: name, Deadline: deadline + jobMargin, Run: func(c context.Context, _ func()) (any, error) {
		c, cancel := context.WithTimeout(c, deadline)
		defer cancel()
		return work(c), nil
	}})
}

// preparation is a job that is cancelled when the pod is to stop.
func (a *Actor) preparation(ctx supervision.Context, name string, deadline time.Duration, work func(context.Context) apply) {
	stop, cancel := context.WithCancel(ctx.Context())
	a.leaveCancels = append(a.leaveCancels, cancel)
	a.job(ctx, name, deadline, func(c context.Context) apply {
		c, end := context.WithCancel(c)
		defer end()
		defer context.AfterFunc(stop, end)()
		defer cancel()
		return work(c)
	})
}

func (a *Actor) cancelPreparations() {
	for _, c := range a.leaveCancels {
		c()
	}
	a.leaveCancels = nil
}

func (a *Actor) setRefresh(ctx supervision.Context) {
	if !a.refreshSet && !a.refreshing && !a.m.Stopping() && volumes.Refreshable(a.pod) {
		a.refreshSet = true
		ctx.After(refreshEvery, refresh{})
	}
}

func (a *Actor) refreshVolumes(ctx supervision.Context) {
	if a.m == nil || a.m.Stopping() || a.refreshing || len(a.paths) == 0 {
		return
	}
	a.refreshing = true
	p, ips, now := a.pod, a.m.PodIPs(), ctx.Clock().Now()
	a.preparation(ctx, "refresh", mountDeadline, func(c context.Context) apply {
		err := a.env.Volumes.Refresh(c, p, ips, now)
		return func(a *Actor, ctx supervision.Context, _ time.Time) {
			a.refreshing = false
			if err != nil {
				ctx.Log().Debug("volumes not refreshed", "pod", p.Namespace+"/"+p.Name, "error", err)
			}
		}
	})
}

// observed compares a relist with what the machine believes.
func (a *Actor) observed(ctx supervision.Context, o Observed, now time.Time) {
	if a.m == nil {
		return
	}
	if !a.sandboxAt.IsZero() && a.sandboxAt.Before(o.Began) && (o.Record == nil || !o.Record.Ready) {
		a.m.SandboxBroke()
	}
	have := map[string]runtime.Container{}
	if o.Record != nil {
		for _, c := range o.Record.Containers {
			have[c.ID] = c
		}
	}
	for name, run := range a.m.Runs() {
		c, ok := have[run.ID]
		switch {
		case ok && c.State == runtime.Exited:
			a.inspect(ctx, run.ID)
		case !ok && a.knownAt[run.ID].Before(o.Began):
			run.Running, run.FinishedAt, run.ExitCode = false, now, unknownExitCode
			run.Reason, run.Message = runtime.ReasonUnknown, "The container could not be located when the pod was looked at."
			a.m.ContainerExited(name, run, now)
		}
	}
	for id, c := range have {
		if _, known := a.knownAt[id]; !known && c.State == runtime.Running && a.m.RunFound(c.Name, toRun(c)) {
			a.knownAt[id] = now
		}
	}
}
