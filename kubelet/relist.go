package kubelet

import (
	"context"
	"fmt"
	"time"

	"github.com/nodeactor/nodeactor/kubelet/pod"
	"github.com/nodeactor/nodeactor/kubelet/runtime"
	"github.com/nodeactor/nodeactor/supervision"
)

const (
	// recoverDeadline is within the child's start window.
	recoverDeadline = 20 * time.Second
	recoverRetry    = 2 * time.Second
	// pollBeatWithin is the longest silence of the runtime's poller.
	pollBeatWithin = 30 * time.Second
	// relistDeadline ends one relist; the next begins with a fresh one.
	relistDeadline = time.Minute
	// repeatEvery is how often a pod is told what was found even if nothing changed.
	repeatEvery = 30 * time.Second
)

// relistChild looks at the runtime once in a while and whenever something exited, and tells pods and health about it.
type relistChild struct {
	*shared
	ready   bool
	listing bool
	told    map[string]toldState // by pod UID
}

type toldState struct {
	digest string
	at     time.Time
}

type relistTime struct{}

type recoverTime struct{}

// recoverDone is the end of the runtime's recovery.
type recoverDone struct {
	report runtime.Report
	err    error
}

// relisted is the end of one relist.
type relisted struct {
	began   time.Time
	records []runtime.PodRecord
	err     error
}

// recoverer and poller are what the runtime may offer besides Runtime.
type (
	recoverer interface {
		Recover(ctx context.Context) (runtime.Report, error)
	}
	poller interface {
		Poll(ctx context.Context, beat func()) error
	}
)

// Receive handles one message.
func (r *relistChild) Receive(ctx supervision.Context, msg any) error {
	switch msg := msg.(type) {
	case supervision.Started:
		r.told = map[string]toldState{}
		ctx.DeferReady()
		r.recover(ctx)
	case recoverTime:
		r.recover(ctx)
	case relistTime:
		r.list(ctx)
		ctx.After(r.Config.RelistPeriod, relistTime{})
	case supervision.JobDone:
		return r.jobDone(ctx, msg)
	}
	return nil
}

func (r *relistChild) jobDone(ctx supervision.Context, d supervision.JobDone) error {
	switch v := d.Value.(type) {
	case recoverDone:
		r.recoveredAs(ctx, v)
	case relisted:
		r.done(ctx, v)
	default:
		if d.Name == "poll" || d.Name == "events" {
			return fmt.Errorf("cannot watch the runtime: job %s ended: %w", d.Name, d.Err)
		}
	}
	return nil
}

// recover lets the runtime come to terms with what an earlier process left, once.
func (r *relistChild) recover(ctx supervision.Context) {
	ctx.Go(supervision.Job{Name: "recover", Deadline: recoverDeadline, Run: func(c context.Context, _ func()) (any, error) {
		r.recovered.mu.Lock()
		defer r.recovered.mu.Unlock()
		rt, ok := r.Runtime.(recoverer)
		if !ok || r.recovered.done {
			return recoverDone{}, nil
		}
		report, err := rt.Recover(c)
		r.recovered.done = err == nil
		return recoverDone{report, err}, nil
	}})
}

func (r *relistChild) recoveredAs(ctx supervision.Context, d recoverDone) {
	if d.err != nil {
		if r.health.bad(d.err) {
			ctx.Log().Error("cannot recover the runtime's state", "error", d.err)
		}
		ctx.After(recoverRetry, recoverTime{})
		return
	}
	if d.report != (runtime.Report{}) {
		ctx.Log().Info("took over what an earlier process left", "adopted", d.report.Adopted, "ended", d.report.Ended, "halfMade", d.report.HalfMade)
	}
	if p, ok := r.Runtime.(poller); ok {
		ctx.Go(supervision.Job{Name: "poll", BeatWithin: pollBeatWithin, Run: func(c context.Context, beat func()) (any, error) {
			return nil, p.Poll(c, beat)
		}})
	}
	ctx.Go(supervision.Job{Name: "events", Endless: true, Run: func(c context.Context, _ func()) (any, error) {
		for {
			select {
			case <-c.Done():
				return nil, c.Err()
			case e := <-r.Runtime.Events():
				r.toPods(e.PodUID, pod.Exited{ID: e.ID})
			}
		}
	}})
	r.list(ctx)
	ctx.After(r.Config.RelistPeriod, relistTime{})
}

func (r *relistChild) list(ctx supervision.Context) {
	if r.listing {
		return
	}
	r.listing = true
	clock := ctx.Clock()
	ctx.Go(supervision.Job{Name: "relist", Deadline: relistDeadline, Run: func(c context.Context, _ func()) (any, error) {
		began := clock.Now()
		records, err := r.Runtime.List(c)
		return relisted{began, records, err}, nil
	}})
}

func (r *relistChild) done(ctx supervision.Context, l relisted) {
	r.listing = false
	if l.err != nil {
		if r.health.bad(l.err) {
			ctx.Log().Error("cannot look at the runtime", "error", l.err)
		}
		return
	}
	r.health.good(l.began)
	r.tell(l, ctx.Clock().Now())
	if !r.ready {
		r.ready = true
		r.found(l.records)
		ctx.Ready()
	}
}

// found keeps what was there at the start for the pods' actors.
func (r *relistChild) found(records []runtime.PodRecord) {
	left := map[string]*runtime.PodRecord{}
	for i := range records {
		left[records[i].Spec.PodUID] = &records[i]
	}
	r.leftover.Store(&left)
}

// tell sends each pod what was found of it, if that is news or the last news is old.
func (r *relistChild) tell(l relisted, now time.Time) {
	byUID := make(map[string]*runtime.PodRecord, len(l.records))
	for i := range l.records {
		byUID[l.records[i].Spec.PodUID] = &l.records[i]
	}
	known := r.table.UIDs()
	for _, uid := range known {
		rec := byUID[uid]
		d := digest(rec)
		if t, ok := r.told[uid]; ok && t.digest == d && now.Sub(t.at) < repeatEvery {
			continue
		}
		r.told[uid] = toldState{d, now}
		r.toPods(uid, pod.Observed{Record: rec, Began: l.began})
	}
	if len(r.told) > 2*len(known)+16 {
		clear(r.told)
	}
}

// digest is equal for records that say the same.
func digest(rec *runtime.PodRecord) string {
	if rec == nil {
		return ""
	}
	b := fmt.Appendf(nil, "%t", rec.Ready)
	for _, c := range rec.Containers {
		b = append(append(append(b, ' '), c.ID...), c.State...)
	}
	return string(b)
}
