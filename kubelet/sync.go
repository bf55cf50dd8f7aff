package kubelet

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/nodeactor/nodeactor/kubelet/pod"
	"github.com/nodeactor/nodeactor/kubelet/runtime"
	"github.com/nodeactor/nodeactor/supervision"
)

const (
	loadDeadline   = 30 * time.Second
	loadRetry      = 2 * time.Second
	orphanDeadline = 5 * time.Minute
	ledgerDeadline = 15 * time.Second
	ledgerRetry    = time.Second
	// healEvery is how often it is checked that each pod has an actor.
	healEvery = time.Second
)

// syncChild follows which pods are bound to this node and keeps an actor for each. A pod is in the ledger before its
// actor starts, so that it comes back after a restart without a server.
type syncChild struct {
	*shared
	pool supervision.Pool
	// assigning are pods being written to the ledger, with their newest version; nil when deleted meanwhile.
	assigning map[string]*v1.Pod
	// finished are pods of which nothing is left here but that the API still shows.
	finished map[string]bool
	// shown are the pods the API shows.
	shown map[string]bool
}

// Messages of the jobs of syncChild.
type (
	ledgerLoaded struct {
		pods []*v1.Pod
		err  error
	}
	podsListed  struct{ pods []*v1.Pod }
	podChanged  struct{ pod *v1.Pod }
	podDeleted  struct{ pod *v1.Pod }
	podRecorded struct {
		uid string
		err error
	}
	again struct{ msg any }
)

// Receive handles one message.
func (s *syncChild) Receive(ctx supervision.Context, msg any) error {
	switch msg := msg.(type) {
	case supervision.Started:
		s.begin(ctx)
	case supervision.JobDone:
		return s.jobDone(ctx, msg)
	case again:
		return s.Receive(ctx, msg.msg)
	case loadTime:
		s.load(ctx)
	case podsListed:
		s.listed(ctx, msg.pods)
	case podChanged:
		s.changed(ctx, msg.pod)
	case podDeleted:
		s.deleted(string(msg.pod.UID))
	case servicesListed:
		s.services.replace(msg.services)
		s.saveServices(ctx)
	case serviceChanged:
		if s.services.set(msg.service, msg.deleted) {
			s.saveServices(ctx)
		}
	case pod.Gone:
		s.gone(msg.UID)
	case rotateTime:
		s.rotateLogs(ctx)
	case healTime:
		s.heal(ctx)
	}
	return nil
}

type (
	loadTime struct{}
	healTime struct{}
)

// heal gives every pod its actor again after the pool itself was restarted.
func (s *syncChild) heal(ctx supervision.Context) {
	if uids := s.table.UIDs(); s.pool.Len() < len(uids) {
		for _, uid := range uids {
			s.ensure(uid)
		}
	}
	ctx.After(healEvery, healTime{})
}

func (s *syncChild) begin(ctx supervision.Context) {
	s.assigning, s.finished, s.shown = map[string]*v1.Pod{}, map[string]bool{}, map[string]bool{}
	s.pool = ctx.System().Pool(sibling(ctx, "pods"))
	s.pods.Store(&s.pool)
	self := ctx.Self()
	s.owner.Store(&self)
	s.load(ctx)
}

// load reads the assigned pods from the ledger.
func (s *syncChild) load(ctx supervision.Context) {
	ctx.Go(supervision.Job{Name: "load", Deadline: loadDeadline, Run: func(context.Context, func()) (any, error) {
		l := ledgerLoaded{}
		l.err = s.Ledger.Each(pod.LedgerBucket, func(_ string, raw []byte) error {
			p := &v1.Pod{}
			if err := json.Unmarshal(raw, p); err != nil || p.UID == "" {
				return nil // unreadable: the API knows better
			}
			l.pods = append(l.pods, p)
			return nil
		})
		if l.err == nil {
			l.err = s.services.load(s.Ledger)
		}
		return l, nil
	}})
}

func (s *syncChild) jobDone(ctx supervision.Context, d supervision.JobDone) error {
	switch v := d.Value.(type) {
	case ledgerLoaded:
		s.start(ctx, v)
	case podRecorded:
		s.recorded(ctx, v)
	}
	if d.Name == rotateJob {
		ctx.After(rotateEvery, rotateTime{})
	}
	if d.Name == "watch pods" || d.Name == "watch services" {
		return d.Err
	}
	return nil
}

// start brings back the pods of the ledger, clears away what belongs to none, and begins to follow the API.
func (s *syncChild) start(ctx supervision.Context, l ledgerLoaded) {
	if l.err != nil {
		ctx.Log().Error("cannot read the assigned pods", "error", l.err)
		ctx.After(loadRetry, loadTime{})
		return
	}
	left := s.leftover.Swap(nil)
	for _, p := range l.pods {
		s.table.Put(p)
		if left != nil {
			s.table.SetRecord(string(p.UID), (*left)[string(p.UID)])
		}
	}
	for _, uid := range s.table.UIDs() {
		s.ensure(uid)
	}
	if left != nil {
		s.clearOrphans(ctx, *left)
	}
	s.watchPods(ctx)
	s.watchServices(ctx)
	ctx.After(healEvery, healTime{})
	ctx.After(rotateEvery, rotateTime{})
}

func (s *syncChild) ensure(uid string) {
	s.pool.Ensure(uid, func() supervision.Handler { return pod.New(s.env, uid) })
}

// clearOrphans removes what is left of pods nobody knows. Nothing new can be among it: a pod is recorded first.
func (s *syncChild) clearOrphans(ctx supervision.Context, left map[string]*runtime.PodRecord) {
	known := map[string]bool{}
	for _, uid := range s.table.UIDs() {
		known[uid] = true
	}
	ctx.Go(supervision.Job{Name: "orphans", Deadline: orphanDeadline, Run: func(c context.Context, _ func()) (any, error) {
		n := 0
		for uid := range left {
			if !known[uid] {
				n++
				if err := s.Runtime.RemoveSandbox(c, uid); err != nil {
					ctx.Log().Warn("cannot remove what is left of an unknown pod", "uid", uid, "error", err)
				}
			}
		}
		// The network and the directories of pods that were assigned since are spared as well.
		spare := func(uid string) bool { _, ok := s.table.Get(uid); return ok || known[uid] }
		if err := s.Network.Sweep(c, spare); err != nil {
			ctx.Log().Warn("cannot remove the network of unknown pods", "error", err)
		}
		n += s.purgeDirs(spare)
		if n > 0 {
			ctx.Log().Info("removed what was left of unknown pods", "count", n)
		}
		return nil, nil
	}})
}

func (s *syncChild) purgeDirs(spare func(uid string) bool) (n int) {
	entries, err := os.ReadDir(s.Config.PodsDir())
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if e.IsDir() && !spare(e.Name()) && s.env.Volumes.Purge(filepath.Base(e.Name())) == nil {
			n++
		}
	}
	return n
}

// listed compares a complete list with what is known.
func (s *syncChild) listed(ctx supervision.Context, pods []*v1.Pod) {
	seen := map[string]bool{}
	for _, p := range pods {
		seen[string(p.UID)] = true
		s.changed(ctx, p)
	}
	for _, uid := range s.table.UIDs() {
		if !seen[uid] {
			s.deleted(uid)
		}
	}
	for uid := range s.shown {
		if !seen[uid] {
			s.deleted(uid)
		}
	}
}

func (s *syncChild) changed(ctx supervision.Context, p *v1.Pod) {
	uid := string(p.UID)
	s.shown[uid] = true
	switch {
	case s.finished[uid]:
	case s.assigning[uid] != nil:
		s.assigning[uid] = p
	default:
		if _, known := s.table.Get(uid); known {
			s.table.Put(p)
			s.ensure(uid)
			s.pool.Send(uid, pod.Update{Pod: p})
			return
		}
		s.assigning[uid] = p
		s.recordPod(ctx, p)
	}
}

func (s *syncChild) deleted(uid string) {
	delete(s.finished, uid)
	delete(s.shown, uid)
	if s.assigning[uid] != nil {
		delete(s.assigning, uid)
		return
	}
	if _, known := s.table.Get(uid); known {
		s.ensure(uid)
		s.pool.Send(uid, pod.Removed{})
	}
}

// recordPod writes the pod to the ledger before anything of it is made.
func (s *syncChild) recordPod(ctx supervision.Context, p *v1.Pod) {
	ctx.Go(supervision.Job{Name: "record", Deadline: ledgerDeadline, Run: func(c context.Context, _ func()) (any, error) {
		copied := *p
		copied.ManagedFields = nil
		if err := supervision.CheckFence(c); err != nil {
			return nil, err
		}
		return podRecorded{string(p.UID), s.Ledger.Put(pod.LedgerBucket, string(p.UID), &copied)}, nil
	}})
}

func (s *syncChild) recorded(ctx supervision.Context, r podRecorded) {
	p := s.assigning[r.uid]
	if p == nil { // deleted meanwhile
		ctx.Go(supervision.Job{Name: "forget", Deadline: ledgerDeadline, Run: func(c context.Context, _ func()) (any, error) {
			if err := supervision.CheckFence(c); err != nil {
				return nil, err
			}
			return nil, s.Ledger.Delete(pod.LedgerBucket, r.uid)
		}})
		return
	}
	if r.err != nil {
		ctx.Log().Error("cannot record an assigned pod", "pod", p.Namespace+"/"+p.Name, "error", r.err)
		delete(s.assigning, r.uid)
		ctx.After(ledgerRetry, again{podChanged{p}})
		return
	}
	delete(s.assigning, r.uid)
	refusal := s.admit(p)
	s.table.Put(p)
	if refusal == nil {
		s.ensure(r.uid)
		return
	}
	s.pool.Ensure(r.uid, func() supervision.Handler { return pod.NewRejected(s.env, r.uid, *refusal) })
}

// gone forgets a pod of which nothing is left. The API may show it for a while, or for long if it has finalizers.
func (s *syncChild) gone(uid string) {
	if s.shown[uid] {
		s.finished[uid] = true
	}
	s.table.Remove(uid)
	s.pool.Stop(uid)
}
