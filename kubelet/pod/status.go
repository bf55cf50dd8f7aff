package pod

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/nodeactor/nodeactor/supervision"
)

// statusWriter remembers what the API has, so that nothing is written twice.
type statusWriter struct {
	api      v1.PodStatus // as the API last showed it
	wrote    *v1.PodStatus
	after    v1.PodStatus // what the API made of wrote
	writing  bool
	failures int
	retryAt  time.Time
	saved    string // what of the status the ledger has
	// since is when a change that can wait was first seen; zero when there is none.
	since time.Time
}

func (w *statusWriter) seen(p *v1.Pod) { w.api = p.Status }

// wants tells whether s has to be written.
func (w *statusWriter) wants(s *v1.PodStatus) bool {
	if apiequality.Semantic.DeepEqual(s, &w.api) {
		return false
	}
	return w.wrote == nil || !apiequality.Semantic.DeepEqual(s, w.wrote) || !apiequality.Semantic.DeepEqual(w.api, w.after)
}

// publish makes the pod's status known to the node at once and to the API by a job, one at a time.
func (a *Actor) publish(ctx supervision.Context, now, wake time.Time) time.Time {
	s := a.m.Status(now)
	var running []string
	for _, r := range a.m.Runs() {
		running = append(running, r.ID)
	}
	a.env.Table.setStatus(a.uid, s, running)
	w := &a.status
	if w.writing || a.m.Done() || a.removed || !w.wants(&s) {
		return wake
	}
	if at := w.due(&s, now); now.Before(at) {
		return earlier(wake, at)
	}
	a.write(ctx, s)
	return wake
}

// due is when s is to be written: at once if somebody may wait for it, else a moment later, so that the steps of a quick
// start are told as one.
func (w *statusWriter) due(s *v1.PodStatus, now time.Time) time.Time {
	if w.since.IsZero() {
		w.since = now
	}
	at := w.since
	if !urgent(s, &w.api) {
		at = at.Add(statusPatience)
	}
	if w.retryAt.After(at) {
		at = w.retryAt
	}
	return at
}

// urgent tells whether s says something new that others act on: the phase, readiness, an ended or restarted container.
func urgent(s, api *v1.PodStatus) bool {
	if s.Phase != api.Phase && s.Phase != v1.PodPending || ready(s) != ready(api) {
		return true
	}
	for i := range s.ContainerStatuses {
		c := &s.ContainerStatuses[i]
		if i < len(api.ContainerStatuses) && (c.RestartCount != api.ContainerStatuses[i].RestartCount ||
			(c.State.Terminated == nil) != (api.ContainerStatuses[i].State.Terminated == nil)) {
			return true
		}
	}
	return false
}

func ready(s *v1.PodStatus) bool {
	for i := range s.Conditions {
		if s.Conditions[i].Type == v1.PodReady {
			return s.Conditions[i].Status == v1.ConditionTrue
		}
	}
	return false
}

func (a *Actor) write(ctx supervision.Context, s v1.PodStatus) {
	w, p := &a.status, a.pod
	w.writing, w.since = true, time.Time{}
	old, mark := w.api, saveMark(&s)
	save := mark != w.saved
	a.job(ctx, "status", apiDeadline, func(c context.Context) apply {
		got, err := patchStatus(c, a.env.Client.CoreV1().Pods(p.Namespace), p, old, s)
		var saveErr error
		if save {
			saveErr = a.save(c, p, s)
		}
		return func(a *Actor, ctx supervision.Context, now time.Time) {
			w.writing = false
			if saveErr == nil {
				w.saved = mark
			}
			w.done(ctx, s, got, err, now)
		}
	})
}

func (w *statusWriter) done(ctx supervision.Context, s v1.PodStatus, got *v1.Pod, err error, now time.Time) {
	if gone(err) {
		w.wrote, w.after = &s, w.api // the API says later that the pod is gone, or that it is another
		return
	}
	if err != nil {
		w.failures++
		w.retryAt = now.Add(min(statusRetryFirst<<min(w.failures-1, 8), statusRetryMax))
		ctx.Log().Debug("pod status not written", "error", err)
		return
	}
	w.failures, w.retryAt = 0, time.Time{}
	w.wrote, w.api, w.after = &s, got.Status, got.Status
}

// saveMark is what of a status must survive a restart without a server.
func saveMark(s *v1.PodStatus) string {
	mark := string(s.Phase)
	for _, list := range [][]v1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses} {
		for i := range list {
			mark += fmt.Sprintf("/%s:%d:%s", list[i].Name, list[i].RestartCount, list[i].ContainerID)
		}
	}
	return mark
}

func (a *Actor) save(ctx context.Context, p *v1.Pod, s v1.PodStatus) error {
	if err := supervision.CheckFence(ctx); err != nil {
		return err
	}
	copied := *p
	copied.Status = s
	copied.ManagedFields = nil
	return a.env.Ledger.Put(LedgerBucket, a.uid, &copied)
}

// patchStatus writes the difference between old and s, if the pod is still the one it was.
func patchStatus(ctx context.Context, pods corev1.PodInterface, p *v1.Pod, old, s v1.PodStatus) (*v1.Pod, error) {
	before, err := json.Marshal(v1.Pod{Status: old})
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: p.UID}, Status: s})
	if err != nil {
		return nil, err
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, v1.Pod{})
	if err != nil {
		return nil, fmt.Errorf("cannot build the patch of a pod's status: %w", err)
	}
	return pods.Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
}
