// Package eventsttl removes Events an hour after they were last counted, and the oldest when there are too many.
package eventsttl

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

// Limits of retention.
const (
	// retention is how long an Event is kept after it was last counted.
	retention = time.Hour
	// most is how many Events are kept.
	most = 20000
	// batch is how many are deleted in one pass.
	batch = 1024
	// parallel is how many are deleted at a time.
	parallel = 4
	// every is how often is looked, pause how long until the next pass when one did not suffice.
	every, pause = 30 * time.Second, time.Second
	// deadline bounds a pass.
	deadline = time.Minute
)

var kind = cache.KindOf[*corev1.Event]()

// Spec is the supervised child.
func Spec(c *cache.Cache, client kubernetes.Interface) supervision.Spec {
	spec := catalog.Row("events-ttl")
	spec.Start = func() supervision.Handler { return &retainer{cache: c, client: client} }
	return spec
}

// look starts a pass.
type look struct{}

// retainer is the actor: a pass, then a rest.
type retainer struct {
	cache  *cache.Cache
	client kubernetes.Interface
}

// Receive implements supervision.Handler.
func (r *retainer) Receive(ctx supervision.Context, msg any) error {
	switch msg := msg.(type) {
	case supervision.Started:
		ctx.After(every, look{})
	case look:
		now := ctx.Clock().Now()
		ctx.Go(supervision.Job{Name: "pass", Deadline: deadline, Run: func(ctx context.Context, _ func()) (any, error) {
			return r.pass(ctx, now)
		}})
	case supervision.JobDone:
		if msg.Err != nil {
			ctx.Log().Warn("old events were not removed and are tried again", "cause", msg.Err)
		}
		if more, _ := msg.Value.(bool); more && msg.Err == nil {
			ctx.After(pause, look{})
			return nil
		}
		ctx.After(every, look{})
	}
	return nil
}

// pass removes a batch; more tells whether one more is due.
func (r *retainer) pass(ctx context.Context, now time.Time) (more bool, err error) {
	expired := r.expired(r.events(), now)
	more = len(expired) > batch
	expired = expired[:min(batch, len(expired))]
	return more, kube.Parallel(ctx, parallel, len(expired), func(ctx context.Context, i int) error { return r.remove(ctx, expired[i]) })
}

// events lists the metadata of all Events, oldest first.
func (r *retainer) events() []*cache.Meta {
	var events []*cache.Meta
	r.cache.Metas(func(m *cache.Meta) bool {
		if kind.Holds(m.Key) {
			events = append(events, m)
		}
		return true
	})
	slices.SortFunc(events, func(a, b *cache.Meta) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.Revision, b.Revision))
	})
	return events
}

// expired picks what is to go: the surplus, and of the rest what was made and last counted too long ago.
func (r *retainer) expired(oldestFirst []*cache.Meta, now time.Time) []*cache.Meta {
	limit := now.Add(-retention)
	surplus := max(0, len(oldestFirst)-most)
	expired := slices.Clone(oldestFirst[:surplus])
	for _, m := range oldestFirst[surplus:] {
		if m.Created > limit.Unix() {
			break
		}
		if r.lastSeen(m).Before(limit) {
			expired = append(expired, m)
		}
	}
	return expired
}

// lastSeen is the newest time an Event carries; one that cannot be read counts by its creation.
func (r *retainer) lastSeen(m *cache.Meta) time.Time {
	newest := time.Unix(m.Created, 0)
	event, ok := cache.Get[*corev1.Event](r.cache, m.Namespace, m.Name)
	if !ok {
		return newest
	}
	times := []time.Time{event.LastTimestamp.Time, event.EventTime.Time}
	if event.Series != nil {
		times = append(times, event.Series.LastObservedTime.Time)
	}
	for _, t := range times {
		if t.After(newest) {
			newest = t
		}
	}
	return newest
}

// remove deletes an Event unless it was counted up meanwhile.
func (r *retainer) remove(ctx context.Context, m *cache.Meta) error {
	revision := fmt.Sprint(m.Revision)
	err := r.client.CoreV1().Events(m.Namespace).Delete(ctx, m.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{ResourceVersion: &revision},
	})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("cannot delete event %s/%s: %w", m.Namespace, m.Name, err)
}
